export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses the samples in Prometheus or OpenMetrics text. @throws Error for a line that is neither sample nor comment */
export function readSamples(text: string): Sample[] {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => {
    const [, name = "", labels = "", value = ""] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === "") throw new Error(`not a sample: ${line}`);
    return { name, labels: readLabels(labels), value: value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value) };
  });
}

function readLabels(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/g)];
  return Object.fromEntries(
    pairs.map(([, name = "", value = ""]) => [name, value.replaceAll("\\n", "\n").replaceAll(/\\(.)/g, "$1")]),
  );
}

/** Returns the metric families in a text, by name without the sample suffixes. */
export const familyNames = (text: string): string[] =>
  [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = ""]) => name);
