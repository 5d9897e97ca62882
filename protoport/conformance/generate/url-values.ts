import { type Kind, kinds } from "./kinds.ts";
import { asked, escaped, type Line, refused } from "./line.ts";
import { sentences } from "./sentences.ts";

/** The URL part that contains a value. */
interface Place {
  readonly name: string;
  readonly rpc: string;
  readonly sentence: string;
  readonly targetOf: (kind: string, text: string) => string;
}

const path: Place = {
  name: "path",
  rpc: "GetScalar",
  sentence: sentences.path,
  targetOf: (kind, text) => `/v1/scalars/${kind}/${escaped(text)}`,
};

const query: Place = {
  name: "query",
  rpc: "Query",
  sentence: sentences.query,
  targetOf: (kind, text) => `/v1/query?f_${kind}=${escaped(text)}`,
};

/** Returns the cases for values of every scalar kind in paths and in queries. */
export function urlValues(): readonly Line[] {
  return [
    ...kinds.flatMap((kind) => placed(kind, path)),
    ...kinds.flatMap((kind) => [...placed(kind, query), ...named(kind)]),
  ];
}

const jsonNameOf = (kind: string): string => `f${kind.slice(0, 1).toUpperCase()}${kind.slice(1)}`;

function placed(
  { name: kind, valid, invalid, open }: Kind,
  { name: place, rpc, sentence, targetOf }: Place,
): readonly Line[] {
  const field = jsonNameOf(kind);
  const get = (text: string): Line["request"] => ({ method: "GET", target: targetOf(kind, text) });
  const id = (name: string): string => `${place}.${kind}.${name}`;
  return [
    ...valid.map(({ name, text, json }): Line => ({
      id: id(name),
      title: `${text} in a ${place} as ${kind}`,
      level: "must",
      sentence,
      request: get(text),
      expect: asked(rpc, field, json),
    })),
    ...invalid.map(({ name, text }): Line => ({
      id: id(name),
      title: `${text} in a ${place} is not a valid ${kind}`,
      level: "must",
      sentence:
        kind === "enum" ? sentences.enumName : /(?:above|below)/.test(name) ? sentences.range : sentences.scalar,
      request: get(text),
      expect: refused,
    })),
    ...open.map(({ name, text, json }): Line => ({
      id: id(name),
      title: `${text} in a ${place} as ${kind} is this value or rejected, never another value`,
      level: "should",
      sentence: sentences.open,
      request: get(text),
      expect: refused,
      or: [asked(rpc, field, json)],
    })),
    ...spaced(kind, field, rpc, place, get, id),
  ];
}

// Returns the cases for texts that only lenient number parsers accept, so that the same value has several URLs.
function spaced(
  kind: string,
  field: string,
  rpc: string,
  place: string,
  get: (text: string) => Line["request"],
  id: (name: string) => string,
): readonly Line[] {
  if (kind === "bool" || kind === "enum") return [];
  const texts: readonly (readonly [name: string, text: string])[] = [
    ["space-before", " 7"],
    ["space-behind", "7 "],
    ["hexadecimal", "0x7"],
    ["underscore", "1_0"],
    ["other-digits", "\u0667"],
    ["null", "null"],
    ["quoted", '"7"'],
  ];
  return texts.map(([name, text]) => ({
    id: id(name),
    title: `${JSON.stringify(text)} in a ${place} as ${kind}`,
    level: "should",
    sentence: sentences.open,
    request: get(text),
    expect: refused,
    // ProtoJSON allows a number in quotes.
    ...(name === "quoted" ? { or: [asked(rpc, field, kind.endsWith("64") ? "7" : 7)] } : {}),
  }));
}

function named({ name: kind, valid }: Kind): readonly Line[] {
  const field = jsonNameOf(kind);
  const known = valid.filter(({ json }) => json !== undefined);
  const [first, ...others] = known;
  const last = others.at(-1) ?? first;
  if (first === undefined || last === undefined) return [];
  const list = `r${field.slice(1)}`;
  return [
    {
      id: `query.${kind}.by-json-name`,
      title: `${kind} in a query, by the JSON name`,
      level: "should",
      sentence: sentences.jsonName,
      request: { method: "GET", target: `/v1/query?${field}=${escaped(first.text)}` },
      expect: asked("Query", field, first.json),
      or: [refused, asked("Query", field, undefined)],
    },
    {
      id: `query.${kind}.repeated`,
      title: `a repeated ${kind} in a query, in its order`,
      level: "must",
      sentence: sentences.repeated,
      request: {
        method: "GET",
        target: `/v1/query?r_${kind}=${escaped(last.text)}&r_${kind}=${escaped(first.text)}&r_${kind}=${escaped(last.text)}`,
      },
      expect: { rpc: "Query", message: { [list]: [last, first, last].map(({ json }) => json ?? null) } },
    },
    {
      id: `query.${kind}.repeated.bad`,
      title: `a repeated ${kind} in a query with an invalid value`,
      level: "must",
      sentence: sentences.scalar,
      request: { method: "GET", target: `/v1/query?r_${kind}=${escaped(first.text)}&r_${kind}=abc` },
      expect: refused,
    },
  ];
}
