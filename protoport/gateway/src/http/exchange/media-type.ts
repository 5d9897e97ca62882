import { tokenPattern } from "./header-fields.ts";

/** A media type (RFC 9110 §8.3.1). Type, subtype and parameter names are in lower case. */
export interface MediaType {
  readonly type: string;
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

const quotedString = String.raw`"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*"`;
const typeAndSubtype = new RegExp(`${tokenPattern}/${tokenPattern}`, "y");
// RFC 9110 §5.6.6: *( OWS ";" OWS [ parameter ] ). A parameter may be missing after a semicolon.
const nextParameter = new RegExp(
  String.raw`[\t ]*;[\t ]*(?:(${tokenPattern})=(${tokenPattern}|${quotedString}))?`,
  "y",
);

/** Parses a Content-Type value. Returns `undefined` if the value is malformed. */
export function parseMediaType(value: string): MediaType | undefined {
  typeAndSubtype.lastIndex = 0;
  const [type] = typeAndSubtype.exec(value) ?? [];
  if (type === undefined) return undefined;
  const parameters: (readonly [string, string])[] = [];
  nextParameter.lastIndex = type.length;
  for (let end = type.length; end < value.length; end = nextParameter.lastIndex) {
    const found = nextParameter.exec(value);
    if (found === null) return undefined;
    const [, name, parameter = ""] = found;
    if (name !== undefined) parameters.push([name.toLowerCase(), unquote(parameter)]);
  }
  return { type: type.toLowerCase(), parameters };
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/gs, "$1") : value;
}

/** Returns whether a media type's charset, if any, is UTF-8. JSON must be UTF-8 (RFC 8259 §8.1). */
export function isUtf8({ parameters }: MediaType): boolean {
  return parameters.every(([name, value]) => name !== "charset" || /^utf-?8$/i.test(value));
}
