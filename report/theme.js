// The button that goes from the system's theme to light and dark.
const names = { system: "as the system", light: "light", dark: "dark" };

export const switchThemes = (button) => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let theme = "system";
  const apply = () => {
    document.documentElement.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
    button.textContent = `Theme: ${names[theme]}`;
  };
  dark.addEventListener("change", apply);
  button.addEventListener("click", () => {
    const all = Object.keys(names);
    theme = all[(all.indexOf(theme) + 1) % all.length];
    apply();
  });
  apply();
};
