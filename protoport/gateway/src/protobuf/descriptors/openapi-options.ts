import type { DescEnum, DescField, DescFile, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

// Reads grpc-gateway's `openapiv2_*` options (protoc-gen-openapiv2/options). Descriptors contain the options as unknown
// fields, so the options are read by field number, without generated code.

/** A link to documentation, as in OpenAPI. */
export interface ExternalDocs {
  readonly description?: string;
  readonly url: string;
}

/** One descriptor's `openapiv2_*` options. A member is missing if the option is not set. */
export interface OpenApiDescOptions {
  readonly tags?: readonly string[];
  /** The name of a service's tag. */
  readonly name?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly externalDocs?: ExternalDocs;
  readonly operationId?: string;
  readonly deprecated?: boolean;
  /** The option fields that are set but not supported, such as `openapiv2_operation.responses`. */
  readonly unsupported: readonly string[];
}

/** A descriptor that can have options. */
export type DescWithOptions = DescMethod | DescMessage | DescService | DescField | DescEnum | DescFile;

/** The field number of every `openapiv2_*` extension. There is one extension for each kind of descriptor. */
export const openApiExtension = 1042;

const none: OpenApiDescOptions = { unsupported: [] };

// Cached, because a document needs each field's options several times.
const cache = new WeakMap<DescWithOptions, OpenApiDescOptions>();

/** Returns a descriptor's `openapiv2_*` options. Malformed options count as not supported. */
export function openApiOptionsOf(desc: DescWithOptions): OpenApiDescOptions {
  const values = desc.proto.options?.$unknown?.filter(({ no }) => no === openApiExtension) ?? [];
  if (values.length === 0) return none;
  const cached = cache.get(desc);
  if (cached !== undefined) return cached;
  const { option, fields } = optionOfKind[desc.kind];
  const found: Found = { unsupported: [] };
  try {
    for (const { data } of values) readFields(new BinaryReader(data).bytes(), option, fields, found);
  } catch {
    found.unsupported.push(option);
  }
  const options = { ...found, unsupported: [...new Set(found.unsupported)] };
  cache.set(desc, options);
  return options;
}

interface Found extends Omit<
  { -readonly [Name in keyof OpenApiDescOptions]: OpenApiDescOptions[Name] },
  "unsupported"
> {
  readonly unsupported: string[];
}

/** Reads a field value. @param name - the field's full name */
type ReadField = (reader: BinaryReader, found: Found, name: string, wireType: WireType) => void;

/** An option's fields by number. Each field has a name, and a reader if the field is supported. */
type Fields = Readonly<Record<number, readonly [name: string, read?: ReadField]>>;

function readFields(bytes: Uint8Array, option: string, fields: Fields, found: Found): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const [field = String(number), read] = fields[number] ?? [];
    const name = `${option}.${field}`;
    if (read !== undefined) {
      read(reader, found, name, wireType);
    } else {
      found.unsupported.push(name);
      reader.skip(wireType, number);
    }
  }
}

function readText(member: "name" | "summary" | "description" | "operationId"): ReadField {
  return (reader, found) => {
    found[member] = reader.string();
  };
}

const readTags: ReadField = (reader, found) => {
  found.tags = [...(found.tags ?? []), reader.string()];
};

const readDeprecated: ReadField = (reader, found) => {
  found.deprecated = reader.bool();
};

const readDocs: ReadField = (reader, found, name) => {
  const docs = new BinaryReader(reader.bytes());
  const texts = new Map<number, string>();
  while (docs.pos < docs.len) {
    const [number, wireType] = docs.tag();
    if (wireType === WireType.LengthDelimited) texts.set(number, docs.string());
    else docs.skip(wireType, number);
  }
  const [description, url] = [texts.get(1), texts.get(2)];
  // OpenAPI requires the URL.
  if (url === undefined) found.unsupported.push(name);
  else found.externalDocs = { ...(description !== undefined && { description }), url };
};

const readJsonSchema: ReadField = (reader, found, name) => readFields(reader.bytes(), name, jsonSchema, found);

/** Returns fields that have a name but are not supported. */
function unsupported(names: Readonly<Record<number, string>>): Fields {
  return Object.fromEntries(Object.entries(names).map(([number, name]) => [number, [name]]));
}

const jsonSchema: Fields = {
  ...unsupported({
    3: "ref",
    5: "title",
    7: "default",
    8: "read_only",
    9: "example",
    10: "multiple_of",
    11: "maximum",
  }),
  ...unsupported({
    12: "exclusive_maximum",
    13: "minimum",
    14: "exclusive_minimum",
    15: "max_length",
    16: "min_length",
  }),
  ...unsupported({ 17: "pattern", 20: "max_items", 21: "min_items", 22: "unique_items", 24: "max_properties" }),
  ...unsupported({ 25: "min_properties", 26: "required", 34: "array", 35: "type", 36: "format", 46: "enum" }),
  ...unsupported({ 48: "extensions", 1001: "field_configuration" }),
  6: ["description", readText("description")],
};

const operation: Fields = {
  ...unsupported({ 6: "consumes", 7: "produces", 9: "responses", 10: "schemes", 12: "security", 13: "extensions" }),
  ...unsupported({ 14: "parameters" }),
  1: ["tags", readTags],
  2: ["summary", readText("summary")],
  3: ["description", readText("description")],
  4: ["external_docs", readDocs],
  5: ["operation_id", readText("operationId")],
  11: ["deprecated", readDeprecated],
};

const tag: Fields = {
  ...unsupported({ 4: "extensions" }),
  1: ["name", readText("name")],
  2: ["description", readText("description")],
  3: ["external_docs", readDocs],
};

const schema: Fields = {
  ...unsupported({ 2: "discriminator", 3: "read_only", 6: "example" }),
  1: ["json_schema", readJsonSchema],
  5: ["external_docs", readDocs],
};

const enumSchema: Fields = {
  ...unsupported({ 2: "default", 3: "title", 4: "required", 5: "read_only", 7: "example", 8: "ref", 9: "extensions" }),
  1: ["description", readText("description")],
  6: ["external_docs", readDocs],
};

const skip: ReadField = (reader) => void reader.bytes();

// swagger-options.ts reads the fields that describe a document.
const swagger: Fields = {
  ...unsupported({ 1: "swagger", 6: "consumes", 7: "produces", 10: "responses", 13: "tags", 14: "external_docs" }),
  ...unsupported({ 15: "extensions" }),
  2: ["info", skip],
  3: ["host", skip],
  4: ["base_path", skip],
  5: ["schemes", (reader, _found, _name, wireType) => reader.skip(wireType)],
  11: ["security_definitions", skip],
  12: ["security", skip],
};

const optionOfKind: Readonly<Record<DescWithOptions["kind"], { readonly option: string; readonly fields: Fields }>> = {
  rpc: { option: "openapiv2_operation", fields: operation },
  service: { option: "openapiv2_tag", fields: tag },
  message: { option: "openapiv2_schema", fields: schema },
  field: { option: "openapiv2_field", fields: jsonSchema },
  enum: { option: "openapiv2_enum", fields: enumSchema },
  file: { option: "openapiv2_swagger", fields: swagger },
};

/** Returns the unsupported `openapiv2_*` fields of services and their types, each with the descriptors that set it. */
export function unsupportedOpenApiOptions(services: readonly DescService[]): ReadonlyMap<string, readonly string[]> {
  const byField = new Map<string, string[]>();
  for (const desc of descriptorsOf(services)) {
    const owner = desc.kind === "file" ? desc.proto.name : nameOf(desc);
    for (const name of openApiOptionsOf(desc).unsupported) byField.set(name, [...(byField.get(name) ?? []), owner]);
  }
  return byField;
}

function nameOf(desc: Exclude<DescWithOptions, DescFile>): string {
  return "typeName" in desc ? desc.typeName : `${desc.parent.typeName}.${desc.name}`;
}

function descriptorsOf(services: readonly DescService[]): ReadonlySet<DescWithOptions> {
  const methods = services.flatMap((service) => service.methods);
  const files = services.map(({ file }) => file);
  const found = new Set<DescWithOptions>([...files, ...services, ...methods]);
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
