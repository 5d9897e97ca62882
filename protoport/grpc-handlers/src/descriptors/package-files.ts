import { create, equals, fromBinary, isFieldSet, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
  type MethodDescriptorProto,
  type ServiceDescriptorProto,
  ServiceDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { joinNames } from "@protoport/gateway/descriptors";
import { withCode } from "@protoport/gateway/errors";
import type { MethodOptions } from "./method-options.ts";

/** The members by which a `@grpc/proto-loader` definition describes a method. */
interface DescribedMethod {
  readonly path: string;
  readonly requestType: { readonly fileDescriptorProtos: readonly Uint8Array[] };
  readonly options?: JsonObject;
}

/** Returns whether a member of a definition is a method. A service may have an RPC with the name `path`. */
export function hasPath(value: unknown): value is Pick<DescribedMethod, "path"> {
  return typeof value === "object" && value !== null && "path" in value && typeof value.path === "string";
}

/** Returns whether a method has descriptors, as in `@grpc/proto-loader` definitions. */
export function isDescribed(method: Partial<DescribedMethod>): method is DescribedMethod {
  return Array.isArray(method.requestType?.fileDescriptorProtos);
}

/**
 * Returns the descriptors for `@grpc/proto-loader` methods as protoc would write them, without custom options. Adds the
 * methods' custom options to `options`.
 *
 * protobufjs writes one file per package, without imports and custom options. Type names are relative, and field names
 * are in camel case unless `keepCase` is set. Method options are in the definition.
 *
 * @throws TypeError if definitions that were loaded separately contain different types with the same name, or if
 * proto-loader has dropped the methods' options
 */
export function toDescriptorSet(methods: readonly DescribedMethod[], options: MethodOptions): FileDescriptorSet {
  // Methods from the same `loadSync` call have the same array of files.
  const loaded = [...new Set(methods.map(({ requestType }) => requestType.fileDescriptorProtos))].map((each) =>
    each.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes)),
  );
  loaded.flat().forEach(refuseFileOfSet);
  const files = new Map<string, FileDescriptorProto>();
  for (const file of loaded.flatMap((each) => withImportedFiles(each, methods, options))) {
    const first = files.get(file.package);
    if (first === undefined) files.set(file.package, file);
    else mergeFile(first, file);
  }
  const named = new Set(methods.map(({ path }) => serviceNameOf(path)));
  const separate = [...files.values()].flatMap((file) => separateServices(file, named));
  return create(FileDescriptorSetSchema, { file: [...separate, options.toFile([...wellKnownFiles])] });
}

/** Returns the service name from a path such as `/package.Service/Method`. */
export function serviceNameOf(path: string): string {
  return path.slice(1, path.lastIndexOf("/"));
}

/**
 * Moves each service to a separate file, unless all services are named. Removes the other services, whose options are
 * not known. Otherwise, two definitions from a package would have two different files with the same name.
 */
function separateServices(file: FileDescriptorProto, named: ReadonlySet<string>): readonly FileDescriptorProto[] {
  const { package: scope, service: services, syntax, dependency } = file;
  const own = services.filter(({ name }) => named.has(joinNames(scope, name)));
  if (own.length === services.length) return [file];
  const toFile = (service: ServiceDescriptorProto): FileDescriptorProto => {
    const name = `${joinNames(scope, service.name).replaceAll(".", "/")}.proto`;
    return create(FileDescriptorProtoSchema, { name, package: scope, syntax, dependency, service: [service] });
  };
  file.name = `${scope.replaceAll(".", "/") || "root"}.proto`;
  file.service = [];
  return [file, ...own.map(toFile)];
}

/** Returns the files that a single `loadSync` call has read. */
function withImportedFiles(
  all: readonly FileDescriptorProto[],
  methods: readonly DescribedMethod[],
  options: MethodOptions,
): FileDescriptorProto[] {
  const names = new Names(all);
  options.addExtensions(all, (typeName, scope) => names.resolve(typeName, scope));
  // The google.protobuf files are replaced by the gateway's own, which protoc has compiled.
  const files = all.filter((file) => file.package !== "google.protobuf");
  const completeService = ({ method: rpcs }: ServiceDescriptorProto, serviceName: string): void => {
    for (const rpc of rpcs) {
      rpc.inputType = names.resolve(rpc.inputType, serviceName);
      rpc.outputType = names.resolve(rpc.outputType, serviceName);
      const path = `/${serviceName}/${rpc.name}`;
      const method = methods.find((each) => each.path === path);
      const rule = method && options.add(rpc, path, method.options);
      if (rule !== undefined) names.keep(rule, rpc);
    }
  };
  // The HTTP rules are read first, because they determine the field names.
  for (const { package: scope, service } of files) {
    for (const each of service) completeService(each, joinNames(scope, each.name));
  }
  for (const file of files) {
    file.dependency = [...wellKnownFiles];
    file.extension = [];
    if (file.package === "google.api") {
      file.messageType = file.messageType.filter(({ name }) => !wellKnownInApi.has(name));
    }
    for (const message of file.messageType) names.complete(message, file.package);
  }
  return files;
}

/**
 * Refuses a file from a descriptor set, whose custom options protobufjs drops. Otherwise, protobufjs derives the name
 * from the package.
 */
function refuseFileOfSet({ name, package: scope }: FileDescriptorProto): void {
  if (name === `${scope.replaceAll(".", "_") || "root"}.proto`) return;
  const problem = `@grpc/proto-loader drops the options of the descriptor set with ${name}, such as HTTP rules`;
  throw withCode(new TypeError(`${problem}: set descriptors to the descriptor set`), "ERR_DESCRIPTORS");
}

/** Adds a file's types to another file in its package. */
function mergeFile(into: FileDescriptorProto, from: FileDescriptorProto): void {
  const scope = from.package;
  addTypes(into.messageType, from.messageType, scope, (a, b) => equals(DescriptorProtoSchema, a, b));
  addTypes(into.enumType, from.enumType, scope, (a, b) => equals(EnumDescriptorProtoSchema, a, b));
  addTypes(into.service, from.service, scope, (a, b) => equals(ServiceDescriptorProtoSchema, a, b));
}

function addTypes<T extends { readonly name: string }>(
  into: T[],
  from: readonly T[],
  scope: string,
  isSame: (a: T, b: T) => boolean,
): void {
  for (const type of from) {
    const first = into.find(({ name }) => name === type.name);
    if (first === undefined) into.push(type);
    else if (!isSame(first, type)) {
      const problem = `the definitions contain different types named "${joinNames(scope, type.name)}"`;
      throw withCode(
        new TypeError(`${problem}: load them with one call of loadSync, or set descriptors`),
        "ERR_DESCRIPTORS",
      );
    }
  }
}

/** The google.protobuf and google.api files that the gateway includes. An RPC may use their messages. */
const wellKnownFiles: readonly string[] = [
  "any",
  "api",
  "descriptor",
  "duration",
  "empty",
  "field_mask",
  "source_context",
  "struct",
  "timestamp",
  "type",
  "wrappers",
]
  .map((name) => `google/protobuf/${name}.proto`)
  .concat("google/api/http.proto", "google/api/httpbody.proto");

/** The google.api messages that the gateway includes. */
const wellKnownInApi: ReadonlySet<string> = new Set(["CustomHttpPattern", "Http", "HttpBody", "HttpRule"]);

/** Restores the names that protobufjs has shortened or changed. */
class Names {
  /** The types by full name. The value is `undefined` for enums. */
  readonly #types = new Map<string, DescriptorProto | undefined>();
  /** The names of fields in HTTP rules. protobufjs does not change these names. */
  readonly #ruleFields = new Map<FieldDescriptorProto, string>();

  constructor(files: readonly FileDescriptorProto[]) {
    for (const file of files) {
      for (const { name } of file.enumType) this.#types.set(joinNames(file.package, name), undefined);
      for (const message of file.messageType) this.#addTypes(message, file.package);
    }
  }

  /** Records the field names in an HTTP rule's path variables and bodies. Literals contain no field names. */
  keep(rule: JsonValue, { inputType, outputType }: MethodDescriptorProto): void {
    const references = JSON.stringify(rule).matchAll(/\{([\w.]+)|"(response_)?body":"(\w+)"/g);
    for (const [, variable, response, body = ""] of references) {
      this.#keepPath((variable ?? body).split("."), response === undefined ? inputType : outputType);
    }
  }

  #keepPath(path: readonly string[], inputType: string): void {
    let typeName = inputType;
    for (const name of path) {
      const scope = typeName.slice(1);
      const fields = this.#types.get(scope)?.field ?? [];
      const field =
        fields.find((each) => each.name === name) ??
        fields.find((each) => protoCamelCase(each.name) === protoCamelCase(name));
      if (field === undefined) return;
      this.#ruleFields.set(field, name);
      typeName = this.resolve(field.typeName, scope);
    }
  }

  /** Completes a message and its nested messages. */
  complete(message: DescriptorProto, scope: string): void {
    const typeName = joinNames(scope, message.name);
    message.extension = [];
    for (const nested of message.nestedType) this.complete(nested, typeName);
    // An extension of the message has a name that begins with a dot. A declaration in the message has an extendee.
    message.field = message.field.filter(({ name, extendee }) => !name.startsWith(".") && extendee === "");
    for (const field of message.field) {
      field.name = this.#fieldName(field);
      if (field.typeName !== "") field.typeName = this.resolve(field.typeName, typeName);
      if (isOptional(field, message)) field.proto3Optional = true;
      const entry = message.nestedType.find((nested) => field.typeName === `.${joinNames(typeName, nested.name)}`);
      if (entry?.options?.mapEntry !== true) continue;
      entry.name = mapEntryName(field.name);
      field.typeName = `.${joinNames(typeName, entry.name)}`;
    }
    sortOneofs(message);
  }

  /** Returns a type's full name, with a leading dot. As in protoc, the innermost scope with the type is used. */
  resolve(name: string, scope: string): string {
    if (name.startsWith(".")) return name;
    for (let outer = scope; outer !== ""; outer = outer.slice(0, Math.max(0, outer.lastIndexOf(".")))) {
      if (this.#types.has(joinNames(outer, name))) return `.${joinNames(outer, name)}`;
    }
    return `.${name}`;
  }

  #addTypes(message: DescriptorProto, scope: string): void {
    const typeName = joinNames(scope, message.name);
    this.#types.set(typeName, message);
    for (const { name } of message.enumType) this.#types.set(joinNames(typeName, name), undefined);
    for (const nested of message.nestedType) this.#addTypes(nested, typeName);
  }

  /** Returns a field's name in snake case, unless an HTTP rule uses camel case or the JSON name would change. */
  #fieldName(field: FieldDescriptorProto): string {
    const { name } = field;
    if (this.#ruleFields.get(field) === name) return name;
    const snake = name.replaceAll(/(?<!^)[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return protoCamelCase(snake) === protoCamelCase(name) ? snake : name;
  }
}

/** Returns the name that protoc gives to a map's entries. Reflection clients refuse other names. */
function mapEntryName(field: string): string {
  return `${field.replaceAll(/(?:^|_+)([a-z]?)/g, (_, first: string) => first.toUpperCase())}Entry`;
}

// Puts the oneofs of optional fields last, as protoc does. Reflection clients reject any other order.
function sortOneofs(message: DescriptorProto): void {
  const { field: fields, oneofDecl: oneofs } = message;
  const members = fields.filter((field) => isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex));
  const isSynthetic = (at: number): boolean =>
    members.some(({ oneofIndex, proto3Optional }) => oneofIndex === at && proto3Optional);
  const order = [...oneofs.keys()].toSorted((a, b) => Number(isSynthetic(a)) - Number(isSynthetic(b)));
  message.oneofDecl = order.flatMap((at) => oneofs[at] ?? []);
  for (const field of members) field.oneofIndex = order.indexOf(field.oneofIndex);
}

/** Returns whether a field is `optional`. protobufjs drops this keyword, but keeps the oneof that protoc adds. */
function isOptional(field: FieldDescriptorProto, { oneofDecl }: DescriptorProto): boolean {
  if (!isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex)) return false;
  const { name = "" } = oneofDecl[field.oneofIndex] ?? {};
  return name.startsWith("_") && protoCamelCase(name.slice(1)) === protoCamelCase(field.name);
}
