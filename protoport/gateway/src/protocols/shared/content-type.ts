import { type BodyPlan, type HeaderFields, isUtf8, parseMediaType, prepareHeaderFields } from "../../http/index.ts";
import { type Codec, formats, type MethodCodecs } from "../formats.ts";

/**
 * Returns a content type in lower case and without parameters. Returns `""` if the content type is malformed, or the
 * format does not allow the charset. Text formats are in UTF-8, and other formats have no charset.
 */
export function normalizeContentType(value: string): string {
  const media = parseMediaType(value);
  if (media === undefined || !isUtf8(media)) return "";
  const hasCharset = media.parameters.some(([name]) => name === "charset");
  return hasCharset && !hasTextFormat(media.type) ? "" : media.type;
}

function hasTextFormat(type: string): boolean {
  return formats.some(({ isText, name }) => isText && (type.endsWith(`/${name}`) || type.endsWith(`+${name}`)));
}

/** The format of calls with a certain content type. */
export interface CallFormat {
  readonly codec: Codec;
  /** The response's content type, as a header field. */
  readonly contentType: HeaderFields;
  readonly body: BodyPlan;
}

/**
 * Returns a protocol's content types and their call formats. A content type is `base+format`, such as
 * `application/grpc+json`, or `base` alone, which means the first format.
 */
export function callFormatsOf(
  base: string,
  codecs: MethodCodecs,
  planOf: (codec: Codec) => BodyPlan,
): (readonly [contentType: string, CallFormat])[] {
  const typesWithFormat = formats.map(({ name }) => callFormat(`${base}+${name}`, codecs[name], planOf(codecs[name])));
  const [first] = typesWithFormat;
  return first === undefined ? [] : [[base, first[1]], ...typesWithFormat];
}

/** Returns a content type and its call format. */
export function callFormat(
  contentType: string,
  codec: Codec,
  body: BodyPlan,
): readonly [contentType: string, CallFormat] {
  return [contentType, { codec, contentType: fieldOf(contentType), body }];
}

const fields = new Map<string, HeaderFields>();

/** Returns a content type's header field, which is encoded once and cached. There are about twenty content types. */
function fieldOf(contentType: string): HeaderFields {
  let field = fields.get(contentType);
  if (field === undefined) fields.set(contentType, (field = prepareHeaderFields("content-type", contentType)));
  return field;
}

/**
 * Returns an error response's content type: the request's type if the protocol defines this type, or else a base type.
 *
 * @param bases - the protocol's content types without a format, longer types first
 */
export function refusalContentType(sent: string | null, bases: readonly [string, ...string[]]): string {
  const type = parseMediaType(sent ?? "")?.type ?? "";
  const base = bases.find((known) => type.startsWith(known)) ?? bases[0];
  const format = formats.find(({ name }) => type === `${base}+${name}`);
  return format === undefined ? base : type;
}
