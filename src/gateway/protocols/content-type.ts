import { type HeaderFields, prepareHeaderFields } from "../carriers/index.ts";
import { type Codec, formats, type MethodCodecs } from "./codec.ts";

/**
 * Returns a content type as the protocols spell it: media types are case-insensitive, and formats of text may have a
 * charset of UTF-8 (RFC 9110 §8.3).
 */
export function spelledContentType(value: string): string {
  return value.toLowerCase().replace(utf8OfText, "$1");
}

const textNames = formats.filter(({ isText }) => isText).map(({ name }) => name);
const utf8OfText = new RegExp(`(${textNames.join("|")}); ?charset="?utf-?8"?$`);

/** How the messages of a call are written: by which codec, and the content type of the answer, as a header field. */
export interface Spelling {
  readonly codec: Codec;
  readonly contentType: HeaderFields;
}

/**
 * Returns the content types of a protocol that adds the format, such as `application/grpc+json`, each with how the call
 * is written. Without a format, the first one is meant.
 */
export function spellingsOf(base: string, codecs: MethodCodecs): (readonly [contentType: string, Spelling])[] {
  const spelled = [...codecs].map(([format, codec]) => spell(`${base}+${format}`, codec));
  const [first] = spelled;
  return first === undefined ? [] : [[base, first[1]], ...spelled];
}

/** Returns a content type with how a call is written that has it. */
export function spell(contentType: string, codec: Codec): readonly [contentType: string, Spelling] {
  return [contentType, { codec, contentType: fieldOf(contentType) }];
}

const fields = new Map<string, HeaderFields>();

/** Returns the same field for the same content type, so that carriers encode it once. There are some twenty. */
function fieldOf(contentType: string): HeaderFields {
  let field = fields.get(contentType);
  if (field === undefined) fields.set(contentType, (field = prepareHeaderFields("content-type", contentType)));
  return field;
}

/**
 * Returns the content type of a refusal: the client's own, as far as it is known.
 *
 * @param bases - the content types of the protocol without a format, longer ones first
 */
export function refusalContentType(sent: string | null, bases: readonly [string, ...string[]]): string {
  const [type = ""] = (sent ?? "").toLowerCase().split(";");
  const base = bases.find((known) => type.startsWith(known)) ?? bases[0];
  const format = formats.find(({ name }) => type === `${base}+${name}`);
  return format === undefined ? base : type;
}
