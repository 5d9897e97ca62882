import {
  type DescEnum,
  type DescExtension,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  getOption,
  hasOption,
  isMessage,
} from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import {
  openapiv2_enum,
  openapiv2_field,
  openapiv2_operation,
  openapiv2_schema,
  openapiv2_swagger,
  openapiv2_tag,
  type Operation,
  type Tag,
} from "../protobuf/gen/protoc-gen-openapiv2/options/annotations_pb.ts";

/** A descriptor whose grpc-gateway options documents use. */
type Described = DescMethod | DescMessage | DescService | DescField | DescEnum;

/** The members of a descriptor's `openapiv2_*` option that documents use. A string that is not set is empty. */
type OpenApiDescOptions = Partial<
  Pick<Tag, "name"> &
    Pick<Operation, "tags" | "summary" | "description" | "operationId" | "deprecated" | "externalDocs">
>;

// `getOption` finds options by extension number. Definitions may import another copy of the options' generated code, or
// lack the file that declares the options.
const optionOfKind = {
  rpc: openapiv2_operation,
  service: openapiv2_tag,
  message: openapiv2_schema,
  field: openapiv2_field,
  enum: openapiv2_enum,
  file: openapiv2_swagger,
};

/** The option fields that documents use, by message. */
const usedFields: Readonly<Record<string, readonly string[]>> = {
  Operation: ["tags", "summary", "description", "external_docs", "operation_id", "deprecated"],
  Tag: ["name", "description", "external_docs"],
  Schema: ["json_schema", "external_docs"],
  JSONSchema: ["description"],
  EnumSchema: ["description", "external_docs"],
  Swagger: ["info", "host", "base_path", "schemes", "security_definitions", "security"],
};

const noOptions: OpenApiDescOptions = {};

// Cached, because a document needs each field's option several times, and `getOption` decodes it on each call.
const cache = new WeakMap<Described, OpenApiDescOptions>();

/** Returns a descriptor's `openapiv2_*` option (protoc-gen-openapiv2/options). A malformed option is ignored. */
export function openApiOptionsOf(desc: Described): OpenApiDescOptions {
  if (!hasOption(desc, optionOfKind[desc.kind])) return noOptions;
  const options = cache.get(desc) ?? readOption(desc);
  cache.set(desc, options);
  return options;
}

function readOption(desc: Described): OpenApiDescOptions {
  try {
    switch (desc.kind) {
      case "rpc":
        return getOption(desc, openapiv2_operation);
      case "service":
        return getOption(desc, openapiv2_tag);
      case "field":
        return getOption(desc, openapiv2_field);
      case "enum":
        return getOption(desc, openapiv2_enum);
      case "message": {
        const { jsonSchema, ...others } = getOption(desc, openapiv2_schema);
        return { ...others, description: jsonSchema?.description ?? "" };
      }
    }
  } catch {
    return noOptions;
  }
}

/** Returns the member `externalDocs` of a descriptor's object in a document. OpenAPI requires the URL. */
export function externalDocsOf(desc: Described): {
  readonly externalDocs?: { readonly description?: string; readonly url: string };
} {
  const { description = "", url = "" } = openApiOptionsOf(desc).externalDocs ?? {};
  return url === "" ? {} : { externalDocs: { ...(description !== "" && { description }), url } };
}

/** The field number of the `openapiv3_*` options (protoc-gen-openapiv3/options/annotations.proto). */
const openApi3Number = 1295;

/**
 * Returns the unsupported `openapiv2_*` fields and `openapiv3_*` options of services and their types, each with the
 * descriptors that set it.
 */
export function unsupportedOpenApiOptions(services: readonly DescService[]): ReadonlyMap<string, readonly string[]> {
  const byField = new Map<string, string[]>();
  for (const desc of descriptorsOf(services)) {
    const owner = desc.kind === "file" ? desc.proto.name : describedNameOf(desc);
    for (const name of unusedFieldsOf(desc)) byField.set(name, [...(byField.get(name) ?? []), owner]);
  }
  return byField;
}

/** Returns the names of a descriptor's option fields that documents do not use, or of the option if it is malformed. */
function unusedFieldsOf(desc: Described | DescFile): readonly string[] {
  const hasOpenApi3 = desc.proto.options?.$unknown?.some(({ no }) => no === openApi3Number) === true;
  const name = optionOfKind[desc.kind].name.replace("openapiv2", "openapiv3").replace("swagger", "document");
  return [...unusedOpenApi2(desc), ...(hasOpenApi3 ? [name] : [])];
}

function unusedOpenApi2(desc: Described | DescFile): readonly string[] {
  const option: DescExtension = optionOfKind[desc.kind];
  if (!hasOption(desc, option)) return [];
  try {
    const value = getOption(desc, option);
    const unused = option.message && isMessage(value) ? unusedIn(reflect(option.message, value), option.name) : [];
    const isWithoutUrl = desc.kind !== "file" && openApiOptionsOf(desc).externalDocs?.url === "";
    return isWithoutUrl ? [...unused, `${option.name}.external_docs`] : unused;
  } catch {
    return [option.name];
  }
}

function unusedIn(message: ReflectMessage, path: string): readonly string[] {
  const used = usedFields[message.desc.name] ?? [];
  const unused = message.fields.flatMap((field) => {
    if (!message.isSet(field)) return [];
    if (!used.includes(field.name)) return [`${path}.${field.name}`];
    return field.name === "json_schema" && field.fieldKind === "message"
      ? unusedIn(message.get(field), `${path}.${field.name}`)
      : [];
  });
  return [...unused, ...(message.getUnknown() ?? []).map(({ no }) => `${path}.${no}`)];
}

function describedNameOf(desc: Described): string {
  return "typeName" in desc ? desc.typeName : `${desc.parent.typeName}.${desc.name}`;
}

function descriptorsOf(services: readonly DescService[]): ReadonlySet<Described | DescFile> {
  const methods = services.flatMap((service) => service.methods);
  const files = services.map(({ file }) => file);
  const found = new Set<Described | DescFile>([...files, ...services, ...methods]);
  for (const { input, output } of methods) found.add(input).add(output);
  for (const desc of found) {
    for (const field of desc.kind === "message" ? desc.fields : []) {
      found.add(field);
      if (field.message !== undefined) found.add(field.message);
      if (field.enum !== undefined) found.add(field.enum);
    }
  }
  return found;
}
