// The KV cache of MHA, GQA, MQA and MLA over the context, beside the room that the weights leave.
import * as charts from "../../../report/charts/kv_footprint.js";
import { format } from "../../../report/format.js";

const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

const viewOf = (answers, longest) => {
  const { side } = answers, room = answers.room(), left = format.bytes(room);
  const series = charts.seriesOf(answers.footprint(), longest);
  const marks = series.map(({ here }) => ({ ...here, lines: [["room beside the weights", left]] }));
  const rooms = room > 0 ? [{ text: `room beside the weights: ${left}`, bytes: room }] : [];
  return { series, marks, rooms, batch: side.batch };
};

// The same axes for the drawings of all configurations.
export const limitsOfFootprints = (all) => {
  const longest = Math.min(2 ** 20, Math.max(...all.map((answers) => answers.longest())));
  return { longest, domain: charts.footprintDomain(all.map((answers) => viewOf(answers, longest))) };
};

export const kvText = (answers, name) => {
  const document = answers.footprint(), own = charts.ownOf(document), { side } = answers, fit = answers.decode().max_sequences;
  const how = own && !charts.isLatent(own) ? counted(own.num_key_value_heads, "KV head") : own?.attention === "mla" ? "latents" : "compressed entries";
  const room = answers.room();
  const left = room > 0 ? `leave room for ${format.bytes(room)} of KV cache` : "leave no room for a KV cache";
  return (
    `${name}: with ${how} a token takes ${format.bytes(document.kv_bytes_per_token)}. The weights and the program's buffers ` +
    `${left}: ${fit ? counted(fit, "sequence") : "no sequence"} of ${counted(side.context, "token")} ${fit > 1 ? "fit" : "fits"}.`
  );
};

export const kvFootprint = (answers, { longest, domain }, width) =>
  charts.kvFootprint({ ...viewOf(answers, longest), domain }, width);
