// The colour of a memory level or another bound; report.css knows the usual ones.
const boundColor = (bound) => {
  const known = /^\w+$/.test(bound) && getComputedStyle(document.documentElement).getPropertyValue(`--${bound}`);
  return `var(--${known ? bound : "other"})`;
};
