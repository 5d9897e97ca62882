import { create, type DescFile, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { FieldOptionsSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { file_greenhouse_v1_greenhouse } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";

/**
 * Returns options with `google.api.*_visibility`, as descriptors without google/api/visibility.proto have them.
 *
 * @param others - options to keep
 */
export function restrictedTo<Options extends DescMessage>(
  labels: string,
  schema: Options,
  others?: MessageShape<Options>,
): MessageShape<Options> {
  const rule = new BinaryWriter().tag(1, WireType.LengthDelimited).string(labels).finish();
  const data = new BinaryWriter().bytes(rule).finish();
  const options = others === undefined ? create(schema) : structuredClone(others);
  options.$unknown = [...(options.$unknown ?? []), { no: 72295727, wireType: WireType.LengthDelimited, data }];
  return options;
}

/** The greenhouse, in which `GetReading` and every field `note` are internal. */
export function restrictedGreenhouse(): DescFile {
  const proto = structuredClone(file_greenhouse_v1_greenhouse.proto);
  for (const field of proto.messageType.flatMap((message) => message.field))
    if (field.name === "note") field.options = restrictedTo("INTERNAL", FieldOptionsSchema);
  for (const method of proto.service.flatMap((service) => service.method)) {
    if (method.name !== "GetReading") continue;
    method.options = restrictedTo("INTERNAL", MethodOptionsSchema, method.options);
  }
  return { ...file_greenhouse_v1_greenhouse, proto };
}
