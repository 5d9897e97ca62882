// oxfmt-ignore
import { create, createFileRegistry, type DescFile, type DescMessage, type DescService, fromBinary, type MessageShape,
  type UnknownField } from "@bufbuild/protobuf";
// oxfmt-ignore
import { EnumDescriptorProtoSchema, EnumValueOptionsSchema, FieldDescriptorProtoSchema, FieldOptionsSchema,
  FileDescriptorSetSchema, MethodOptionsSchema, ServiceDescriptorProtoSchema, ServiceOptionsSchema
} from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { file_greenhouse_v1_greenhouse, GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "./descriptor-set.ts";

/** Returns options with `google.api.*_visibility` as unknown fields, as in descriptors without its file. */
export function restrictedTo<Options extends DescMessage>(
  labels: string,
  schema: Options,
  others?: MessageShape<Options>,
): MessageShape<Options> {
  // google/api/visibility.proto: VisibilityRule has selector = 1 and restriction = 2.
  const rule = new BinaryWriter().tag(2, WireType.LengthDelimited).string(labels).finish();
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

/** The services of {@link restrictedGreenhouse} with a field with an internal enum value, and an internal service. */
export function restrictedServices(): readonly DescService[] {
  const { proto } = restrictedGreenhouse();
  proto.enumType.push(
    create(EnumDescriptorProtoSchema, {
      name: "Mode",
      value: [
        { name: "MODE_UNSPECIFIED", number: 0 },
        { name: "SPRAY", number: 1 },
        { name: "FLOOD", number: 2, options: restrictedTo("INTERNAL", EnumValueOptionsSchema) },
      ],
    }),
  );
  for (const { name, field } of proto.messageType) {
    if (name !== "Reading" && !name.startsWith("WaterBed")) continue;
    const mode = { name: "mode", jsonName: "mode", number: 4, label: 1, type: 14, typeName: ".greenhouse.v1.Mode" };
    field.push(create(FieldDescriptorProtoSchema, mode));
  }
  const [inputType, outputType] = [".greenhouse.v1.WaterBedRequest", ".greenhouse.v1.WaterBedResponse"];
  proto.service.push(
    create(ServiceDescriptorProtoSchema, {
      name: "Maintenance",
      options: restrictedTo("INTERNAL", ServiceOptionsSchema),
      method: [{ name: "Rinse", inputType, outputType }],
    }),
  );
  const set = descriptorSetOf({ ...file_greenhouse_v1_greenhouse, proto });
  const types = createFileRegistry(fromBinary(FileDescriptorSetSchema, set));
  return [...types].filter((type) => type.kind === "service");
}

/** The greenhouse with `protoport.auth.v1.required_scopes` as an unknown field. @param scopes - by RPC */
export function scopedGreenhouse(scopes: Readonly<Record<string, readonly string[]>>): typeof GreenhouseService {
  const options = Object.entries(scopes).map(([name, required]): [string, UnknownField] => {
    const rule = new BinaryWriter();
    for (const scope of required) rule.tag(1, WireType.LengthDelimited).string(scope);
    const data = new BinaryWriter().bytes(rule.finish()).finish();
    return [name, { no: 57386, wireType: WireType.LengthDelimited, data }];
  });
  return greenhouseWithOptions(Object.fromEntries(options));
}

/** The greenhouse with custom options as unknown fields, as in descriptors without their files, by RPC. */
export function greenhouseWithOptions(options: Readonly<Record<string, UnknownField>>): typeof GreenhouseService {
  const proto = structuredClone(file_greenhouse_v1_greenhouse.proto);
  for (const method of proto.service.flatMap((service) => service.method)) {
    const option = options[method.name];
    if (option === undefined) continue;
    method.options ??= create(MethodOptionsSchema);
    method.options.$unknown = [...(method.options.$unknown ?? []), option];
  }
  const set = fromBinary(FileDescriptorSetSchema, descriptorSetOf({ ...file_greenhouse_v1_greenhouse, proto }));
  const service = createFileRegistry(set).getService(GreenhouseService.typeName);
  if (service === undefined || !isGreenhouse(service)) throw new TypeError("the set has no greenhouse");
  return service;
}

/** Returns whether a service has the greenhouse's RPCs. */
export const isGreenhouse = (service: DescService): service is typeof GreenhouseService =>
  service.typeName === GreenhouseService.typeName;
