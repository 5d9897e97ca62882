import type { DescFile } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { openApiExtension } from "./openapi-options.ts";

/** OpenAPI 2's Security Scheme Object. Numbers are values from the enums in openapiv2.proto. */
export interface SwaggerScheme {
  readonly type?: number;
  readonly description?: string;
  readonly name?: string;
  readonly in?: number;
  readonly flow?: number;
  readonly authorization_url?: string;
  readonly token_url?: string;
  readonly scopes?: { readonly scope?: Readonly<Record<string, string>> };
}

/** The required scopes, by security scheme name. */
export interface SwaggerRequirement {
  readonly security_requirement?: Readonly<Record<string, { readonly scope?: readonly string[] }>>;
}

/** The `openapiv2_swagger` fields that describe a document, by their names in openapiv2.proto. */
export interface SwaggerOptions {
  readonly info?: {
    readonly title?: string;
    readonly description?: string;
    readonly terms_of_service?: string;
    readonly contact?: { readonly name?: string; readonly url?: string; readonly email?: string };
    readonly license?: { readonly name: string; readonly url?: string };
    readonly version?: string;
  };
  readonly host?: string;
  readonly base_path?: string;
  /** Values from the enum Scheme. */
  readonly schemes?: readonly number[];
  readonly security_definitions?: { readonly security?: Readonly<Record<string, SwaggerScheme>> };
  readonly security?: readonly SwaggerRequirement[];
}

/** An option value. Messages and maps are objects. */
type SwaggerValue = string | number | readonly SwaggerValue[] | { readonly [name: string]: SwaggerValue };

/** The type of a field value. */
type Shape = "text" | "number" | "numbers" | Fields | { readonly list: Shape } | { readonly map: Shape };

/** A message's fields by number. */
interface Fields {
  readonly [number: number]: readonly [name: string, shape: Shape];
}

const contact: Fields = { 1: ["name", "text"], 2: ["url", "text"], 3: ["email", "text"] };

const info: Fields = {
  1: ["title", "text"],
  2: ["description", "text"],
  3: ["terms_of_service", "text"],
  4: ["contact", contact],
  5: ["license", { 1: ["name", "text"], 2: ["url", "text"] }],
  6: ["version", "text"],
};

const scheme: Fields = {
  1: ["type", "number"],
  2: ["description", "text"],
  3: ["name", "text"],
  4: ["in", "number"],
  5: ["flow", "number"],
  6: ["authorization_url", "text"],
  7: ["token_url", "text"],
  8: ["scopes", { 1: ["scope", { map: "text" }] }],
};

const requirement: Fields = { 1: ["security_requirement", { map: { 1: ["scope", { list: "text" }] } }] };

const swagger: Fields = {
  2: ["info", info],
  3: ["host", "text"],
  4: ["base_path", "text"],
  5: ["schemes", "numbers"],
  11: ["security_definitions", { 1: ["security", { map: scheme }] }],
  12: ["security", { list: requirement }],
};

/** Returns a file's option `openapiv2_swagger`. Returns an empty object if the option is not set or malformed. */
export function swaggerOptionsOf({ proto }: DescFile): SwaggerOptions {
  const found: Record<string, SwaggerValue> = {};
  try {
    for (const { no, data } of proto.options?.$unknown ?? [])
      if (no === openApiExtension) readFields(new BinaryReader(data).bytes(), swagger, found);
  } catch {
    return {};
  }
  const options: SwaggerOptions = Object(found);
  return options;
}

function readFields(bytes: Uint8Array, fields: Fields, found: Record<string, SwaggerValue>): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const [name, shape] = fields[number] ?? [];
    if (name === undefined || shape === undefined) reader.skip(wireType, number);
    // A plain assignment would set the prototype if a map has the key `__proto__`.
    else Object.defineProperty(found, name, { ...property, value: readValue(reader, wireType, shape, found[name]) });
  }
}

const property = { configurable: true, enumerable: true, writable: true };

function readValue(
  reader: BinaryReader,
  wireType: number,
  shape: Shape,
  before: SwaggerValue | undefined,
): SwaggerValue {
  if (shape === "text") return reader.string();
  if (shape === "number") return reader.int32();
  const items: readonly SwaggerValue[] = Array.isArray(before) ? before : [];
  if (shape === "numbers") {
    if (wireType === 0) return [...items, reader.int32()];
    const packed = new BinaryReader(reader.bytes());
    const numbers: number[] = [];
    while (packed.pos < packed.len) numbers.push(packed.int32());
    return [...items, ...numbers];
  }
  if ("list" in shape) return [...items, readValue(reader, wireType, shape.list, undefined)];
  const members: Record<string, SwaggerValue> = { ...Object(before) };
  if (!("map" in shape)) {
    readFields(reader.bytes(), shape, members);
    return members;
  }
  const entry: { key?: string; value?: SwaggerValue } = {};
  readFields(reader.bytes(), { 1: ["key", "text"], 2: ["value", shape.map] }, entry);
  const { key = "", value = shape.map === "text" ? "" : {} } = entry;
  return Object.defineProperty(members, key, { ...property, value });
}
