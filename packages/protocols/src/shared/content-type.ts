import { type BodyPlan, type HeaderFields, isUtf8, parseMediaType, prepareHeaderFields } from "@plantstore/http";
import type { Codec } from "../formats/format.ts";
import { formats, type MethodCodecs } from "../formats.ts";

/**
 * Returns a content type in lower case and without parameters, or `""` if it is malformed, or has a charset that the
 * format does not allow. Text formats are in UTF-8, and other formats have no charset.
 */
export function normalizeContentType(value: string): string {
  const media = parseMediaType(value);
  if (media === undefined || !isUtf8(media)) return "";
  const hasCharset = media.parameters.some(([name]) => name === "charset");
  return hasCharset && !endsInTextFormat.test(media.type) ? "" : media.type;
}

const textNames = formats.filter(({ isText }) => isText).map(({ name }) => name);
const endsInTextFormat = new RegExp(`[/+](?:${textNames.join("|")})$`);

/** The call format for an RPC with a certain content type. */
export interface CallFormat {
  readonly codec: Codec;
  /** The response's content type, as a header field. */
  readonly contentType: HeaderFields;
  /** How the body is read when the client sends one message. */
  readonly body: BodyPlan;
}

/**
 * Returns a protocol's content types, each with its calls' format: `base+format`, such as `application/grpc+json`, and
 * `base` alone, which means the first format.
 */
export function callFormatsOf(
  base: string,
  codecs: MethodCodecs,
  planOf: (codec: Codec) => BodyPlan,
): (readonly [contentType: string, CallFormat])[] {
  const typesWithFormat = [...codecs].map(([format, codec]) => callFormat(`${base}+${format}`, codec, planOf(codec)));
  const [first] = typesWithFormat;
  return first === undefined ? [] : [[base, first[1]], ...typesWithFormat];
}

/** Returns a content type with its calls' format. */
export function callFormat(
  contentType: string,
  codec: Codec,
  body: BodyPlan,
): readonly [contentType: string, CallFormat] {
  return [contentType, { codec, contentType: fieldOf(contentType), body }];
}

const fields = new Map<string, HeaderFields>();

/** Returns the same object for the same content type, so that it is encoded once. There are about twenty. */
function fieldOf(contentType: string): HeaderFields {
  let field = fields.get(contentType);
  if (field === undefined) fields.set(contentType, (field = prepareHeaderFields("content-type", contentType)));
  return field;
}

/**
 * Returns a refusal's content type: the one that the client sent, if the protocol defines it.
 *
 * @param bases - the protocol's content types without a format, longer ones first
 */
export function refusalContentType(sent: string | null, bases: readonly [string, ...string[]]): string {
  const type = parseMediaType(sent ?? "")?.type ?? "";
  const base = bases.find((known) => type.startsWith(known)) ?? bases[0];
  const format = formats.find(({ name }) => type === `${base}+${name}`);
  return format === undefined ? base : type;
}
