import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  type JsonObject,
  type JsonValue,
  mergeFromBinary,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import {
  type FieldDescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  type MethodDescriptorProto,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { joinNames } from "@protoport/gateway/descriptors";
import { messageOf, withCode } from "@protoport/gateway/errors";
import { http } from "@protoport/gateway/gen/google/api/annotations_pb.js";

/** The values that proto-loader has for the options that a method does not set. */
const defaults: ReadonlyMap<string, JsonValue> = new Map<string, JsonValue>([
  ["deprecated", false],
  ["idempotency_level", "IDEMPOTENCY_UNKNOWN"],
]);

/** The name of the message that has a field for each extension of `google.protobuf.MethodOptions`. */
const optionsType = "grpc_proto_loader.MethodOptions";

/**
 * The custom options of `@grpc/proto-loader` methods, which are in the definition, but not in its descriptors. Repeated
 * options are omitted, because proto-loader keeps only the last value.
 */
export class MethodOptions {
  /** The fields of {@link optionsType}, by the extension's full name in camel case. */
  readonly #fields = new Map<string, FieldDescriptorProto>([["google.api.http", copyField(http.proto)]]);
  readonly #values = new Map<string, ReadonlyMap<string, JsonValue>>();

  /** Adds a load's extensions, which protobufjs appends to the fields of MethodOptions, with a dot before the name. */
  addExtensions(files: readonly FileDescriptorProto[], resolve: (typeName: string, scope: string) => string): void {
    const scope = "google.protobuf";
    const messages = files.filter((file) => file.package === scope).flatMap(({ messageType }) => messageType);
    for (const field of messages.find(({ name }) => name === "MethodOptions")?.field ?? []) {
      if (!field.name.startsWith(".")) continue;
      const typeName = field.typeName === "" ? "" : resolve(field.typeName, scope);
      this.#fields.set(camelCaseOf(field.name.slice(1)), copyField({ ...field, typeName }));
    }
  }

  /**
   * Adds a method's options. Returns the HTTP rule, if any.
   *
   * @throws TypeError for an option without a declaration, or if the definition lacks the method's options
   */
  add(rpc: MethodDescriptorProto, path: string, options?: JsonObject): JsonValue | undefined {
    const set = Object.entries(options ?? {}).filter(([name, value]) => value !== defaults.get(name));
    // protobufjs writes empty options for a method with custom options only. Old versions of proto-loader omit all. For a
    // descriptor set, proto-loader has only defaults.
    if (rpc.options !== undefined && set.every(([name]) => name === "uninterpreted_option"))
      throw optionsProblem(`the definition lacks the options of ${path}; update @grpc/proto-loader`);
    const custom = set.filter(([name]) => name.startsWith("("));
    const values = new Map<string, JsonValue>();
    for (const [name, value] of custom) values.set(this.#resolve(name.slice(1, -1), path), value);
    this.#values.set(path, values);
    return values.get("google.api.http");
  }

  /** Returns the file that declares {@link optionsType}. @param dependency - the files with the options' types */
  toFile(dependency: string[]): FileDescriptorProto {
    const [scope = "", name = ""] = optionsType.split(".");
    const field = [...this.#fields.values()];
    return create(FileDescriptorProtoSchema, {
      name: `${scope}.proto`,
      package: scope,
      dependency,
      messageType: [{ name, field }],
    });
  }

  /** Sets a method's options. @param types - the linked types @throws TypeError for an invalid value */
  restore({ proto, parent, name }: DescMethod, types: Registry): void {
    const type = types.getMessage(optionsType);
    const path = `/${parent.typeName}/${name}`;
    for (const [option, value] of this.#values.get(path) ?? []) {
      const { number, label } = this.#fields.get(option) ?? {};
      const field = type?.fields.find((each) => each.number === number);
      if (label === FieldDescriptorProto_Label.REPEATED) continue;
      try {
        if (type === undefined || field === undefined) throw new TypeError("its type is missing");
        const bytes = toBinary(type, fromJson(type, { [field.jsonName]: optionToJson(field, value) }));
        mergeFromBinary(MethodOptionsSchema, (proto.options ??= create(MethodOptionsSchema)), bytes);
      } catch (error) {
        throw optionsProblem(`the option (${option}) of ${path} is not readable: ${messageOf(error)}`);
      }
    }
  }

  /** Returns an option's full name in camel case. As in protoc, the innermost scope with the option is used. */
  #resolve(name: string, path: string): string {
    const scopes = name.startsWith(".") ? [""] : path.slice(1).replace("/", ".").split(".");
    for (let length = scopes.length; length >= 0; length--) {
      const fullName = camelCaseOf(joinNames(scopes.slice(0, length).join("."), name.replace(/^\./, "")));
      if (this.#fields.has(fullName)) return fullName;
    }
    throw optionsProblem(`no file declares the option (${name}) of ${path}; import its file`);
  }
}

function copyField({ number, type, typeName, label }: FieldDescriptorProto): FieldDescriptorProto {
  return create(FieldDescriptorProtoSchema, { name: `option_${number}`, number, type, typeName, label });
}

function camelCaseOf(fullName: string): string {
  return fullName.split(".").map(protoCamelCase).join(".");
}

/** Converts a value in protobuf's text format, as protobufjs reads it, to JSON. */
function optionToJson(field: DescField, value: JsonValue): JsonValue {
  if (field.fieldKind === "list") return [value].flat().map((item) => toJsonItem(field.message, item));
  if (field.fieldKind !== "map") return toJsonItem(field.message, value);
  const entries = [value].flat().filter(isOptionObject);
  return Object.fromEntries(entries.map(({ key, value: of = {} }) => [key, toJsonItem(field.message, of)]));
}

function toJsonItem(message: DescMessage | undefined, value: JsonValue): JsonValue {
  if (message === undefined || !isOptionObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      const field = message.fields.find(({ jsonName }) => jsonName === protoCamelCase(name));
      return [name, field === undefined ? each : optionToJson(field, each)];
    }),
  );
}

function isOptionObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function optionsProblem(problem: string): TypeError {
  return withCode(new TypeError(`${problem}, or set descriptors`), "ERR_DESCRIPTORS");
}
