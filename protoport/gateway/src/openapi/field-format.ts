import { type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { field_info, FieldInfo_Format } from "../protobuf/gen/google/api/field_info_pb.ts";
import type { OpenApiSchema } from "./open-api-document.ts";

/** The format that a field's text must have. */
interface FieldFormat {
  readonly keywords: OpenApiSchema;
  readonly example: string;
}

const exampleOfIpv4 = "192.0.2.1";

/** The AIP-202 formats for which JSON Schema has a name. */
const infoFormats: ReadonlyMap<FieldInfo_Format, FieldFormat> = new Map([
  [FieldInfo_Format.UUID4, { keywords: { format: "uuid" }, example: "8e03978e-40d5-43e8-bc93-6894a57f9324" }],
  [FieldInfo_Format.IPV4, { keywords: { format: "ipv4" }, example: exampleOfIpv4 }],
  [FieldInfo_Format.IPV6, { keywords: { format: "ipv6" }, example: "2001:db8::1" }],
  [
    FieldInfo_Format.IPV4_OR_IPV6,
    { keywords: { anyOf: [{ format: "ipv4" }, { format: "ipv6" }] }, example: exampleOfIpv4 },
  ],
]);

// Cached, because `getOption` decodes the option on each call.
const formatsOf = new WeakMap<DescField, FieldFormat | undefined>();

/**
 * Returns the format that `google.api.field_info` declares for a field's text, or for each element's text, if any. The
 * gateway does not check the format. The option is found by extension number, as in `field-behavior.ts`.
 */
export function fieldFormatOf(field: DescField): FieldFormat | undefined {
  if (field.proto.options === undefined || !isTextField(field)) return undefined;
  if (!formatsOf.has(field)) formatsOf.set(field, infoFormats.get(getOption(field, field_info).format));
  return formatsOf.get(field);
}

function isTextField({ scalar, message }: DescField): boolean {
  if (message !== undefined) return isWrapperDesc(message) && message.fields[0].scalar === ScalarType.STRING;
  return scalar === ScalarType.STRING;
}
