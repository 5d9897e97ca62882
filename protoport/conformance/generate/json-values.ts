import { is64, type Kind, kinds } from "./kinds.ts";
import { asked, type Line, refused } from "./line.ts";
import { sentences } from "./sentences.ts";

/** Returns the cases for values of every scalar kind in JSON bodies and in responses. */
export function jsonValues(): readonly Line[] {
  return kinds.flatMap((kind) => [
    ...read(kind),
    ...refusals(kind),
    ...lists(kind),
    ...wrapped(kind),
    ...written(kind),
  ]);
}

const post = (body: string): Line["request"] => ({ method: "POST", target: "/v1/everything", json: body });

const fieldOf = (kind: string): string => `f${kind.slice(0, 1).toUpperCase()}${kind.slice(1)}`;

const isNumber = (kind: string): boolean => kind !== "bool" && kind !== "enum";

function sentenceOf(kind: string): string {
  return kind === "bool" ? sentences.bool : kind === "enum" ? sentences.enumeration : sentences.number;
}

/** Returns the JSON spellings of a value, such as a number and a string. */
function spellings(kind: string, text: string): readonly (readonly [name: string, json: string])[] {
  if (kind === "bool") return [["literal", text]];
  if (kind === "enum") return [["text", `"${text}"`]];
  return [
    ["number", text],
    ["text", `"${text}"`],
  ];
}

function read({ name: kind, valid }: Kind): readonly Line[] {
  const field = fieldOf(kind);
  const forms = valid.flatMap(({ name, text, json }) =>
    spellings(kind, text).map(([spelling, body]): Line => ({
      id: `json.${kind}.${name}.${spelling}`,
      title: `${body} in a body as ${kind}`,
      level: "must",
      sentence: sentenceOf(kind),
      request: post(`{"${field}":${body}}`),
      expect: asked("Create", field, json),
    })),
  );
  const known = valid.find(({ json }) => json !== undefined);
  if (known === undefined) return forms;
  const body = spellings(kind, known.text)[0]?.[1] ?? "";
  // oxfmt-ignore
  return [
    ...forms,
    { id: `json.${kind}.by-proto-name`, title: `a ${kind} in a body, with the name of the definition`, level: "must",
      sentence: sentences.names, request: post(`{"f_${kind}":${body}}`), expect: asked("Create", field, known.json) },
    { id: `json.${kind}.null`, title: `null leaves a ${kind} unset`, level: "must", sentence: sentences.nulls,
      request: post(`{"${field}":null}`), expect: { rpc: "Create", message: {} } },
    ...exponents(kind, field),
  ];
}

function exponents(kind: string, field: string): readonly Line[] {
  if (!isNumber(kind)) return [];
  const value = is64(kind) ? "100" : 100;
  return ["1e2", '"1e2"', "100.0", "1.0E+2"].map((text, at) => ({
    id: `json.${kind}.exponent-${at + 1}`,
    title: `${text} in a body as ${kind}`,
    level: "must",
    sentence: text === "100.0" && !/double|float/.test(kind) ? sentences.fractions : sentences.number,
    request: post(`{"${field}":${text}}`),
    expect: asked("Create", field, value),
  }));
}

function refusals({ name: kind, invalid }: Kind): readonly Line[] {
  const field = fieldOf(kind);
  // A text that is not a JSON number can only be sent as a string.
  const texts = invalid.flatMap(({ name, text }): readonly (readonly [name: string, json: string])[] => {
    const quoted = [name, `"${text}"`] as const;
    return isNumber(kind) && /^-?\d+(?:\.\d+)?$/.test(text) ? [quoted, [`${name}.number`, text]] : [quoted];
  });
  const others: readonly (readonly [name: string, json: string])[] = [
    ["empty-text", '""'],
    ["object", "{}"],
    ["list", "[]"],
    ...(kind === "bool"
      ? [["yes", '"yes"'] as const, ["number", "1"] as const, ["text", '"true"'] as const]
      : [["bool", "true"] as const]),
    ...(isNumber(kind) ? [["space-behind", '"7 "'] as const, ["hexadecimal", '"0x7"'] as const] : []),
  ];
  return [...texts, ...others].map(([name, body]) => ({
    id: `json.${kind}.no.${name}`,
    title: `${body} in a body is not a valid ${kind}`,
    level: "must",
    sentence: refusalSentence(kind, name),
    request: post(`{"${field}":${body}}`),
    expect: refused,
    // protobuf's conformance suite only recommends rejecting these spellings of true.
    ...(/^(?:yes|number|text)$/.test(name) ? { level: "should" } : {}),
    // The table for wrapper types has "true" as a string.
    ...(name === "text" ? { or: [asked("Create", field, true)] } : {}),
    // An unknown enum value may have any string as its name, and parsers may have an option to ignore unknown values.
    ...(kind === "enum" && body.startsWith('"') ? { level: "should", or: [{ rpc: "Create", message: {} }] } : {}),
  }));
}

function refusalSentence(kind: string, name: string): string {
  if (/above|below/.test(name) && kind !== "enum") return sentences.range;
  if (name.startsWith("fraction")) return sentences.fractions;
  if (/^(?:yes|number|text)$/.test(name)) return sentences.otherBool;
  return sentenceOf(kind);
}

function lists({ name: kind, valid }: Kind): readonly Line[] {
  const list = `r${fieldOf(kind).slice(1)}`;
  const known = valid.filter(({ json }) => json !== undefined);
  const texts = known.map(({ text }) => spellings(kind, text)[0]?.[1] ?? "");
  return [
    {
      id: `json.${kind}.list`,
      title: `an array of ${kind} in a body`,
      level: "must",
      sentence: "ProtoJSON, Representation of each type (repeated)",
      request: post(`{"${list}":[${texts.join(",")}]}`),
      expect: { rpc: "Create", message: { [list]: known.map(({ json }) => json ?? null) } },
    },
    {
      id: `json.${kind}.list.null`,
      title: `null in an array of ${kind}`,
      level: "must",
      sentence: sentences.nulls,
      request: post(`{"${list}":[${texts[0] ?? ""},null]}`),
      expect: refused,
    },
    {
      id: `json.${kind}.list.scalar`,
      title: `a single ${kind} instead of an array`,
      level: "must",
      sentence: "ProtoJSON, Representation of each type (repeated)",
      request: post(`{"${list}":${texts[0] ?? ""}}`),
      expect: refused,
    },
    {
      id: `json.${kind}.list.empty`,
      title: `an empty array of ${kind}`,
      level: "must",
      sentence: "ProtoJSON, Representation of each type (repeated)",
      request: post(`{"${list}":[]}`),
      expect: { rpc: "Create", message: {} },
    },
  ];
}

const wrappers = new Set(["double", "float", "int64", "uint64", "int32", "uint32", "bool"]);

function wrapped({ name: kind, valid }: Kind): readonly Line[] {
  if (!wrappers.has(kind)) return [];
  const field = `w${fieldOf(kind).slice(1)}`;
  const zero = kind === "bool" ? false : is64(kind) ? "0" : 0;
  return valid.flatMap(({ name, text, json = zero }): readonly Line[] => [
    {
      id: `json.${kind}.wrapper.${name}`,
      title: `${text} in a body as the wrapper of ${kind}`,
      level: "must",
      sentence: sentences.wrappers,
      request: post(`{"${field}":${text}}`),
      expect: asked("Create", field, json),
    },
    {
      id: `query.${kind}.wrapper.${name}`,
      title: `${text} in a query as the wrapper of ${kind}`,
      level: "should",
      sentence: `${sentences.wrappers}; google/api/http.proto maps the fields of messages one by one`,
      request: { method: "GET", target: `/v1/query?w_${kind}=${text}` },
      expect: asked("Query", field, json),
      or: [refused, asked("Query", field, undefined)],
    },
  ]);
}

function written({ name: kind, valid }: Kind): readonly Line[] {
  const field = fieldOf(kind);
  return valid.map(({ name, text, json }) => ({
    id: `response.${kind}.${name}`,
    title: `the ${kind} ${text} in a response`,
    level: "must",
    sentence: json === undefined ? sentences.presence : sentenceOf(kind),
    request: { method: "POST", target: "/v1/return", json: `{"${field}":${spellings(kind, text)[0]?.[1] ?? ""}}` },
    expect: { status: "200", json: json === undefined ? {} : { [field]: json } },
  }));
}
