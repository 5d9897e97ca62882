import { create, type DescFile } from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
  type FileDescriptorProto,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { toShortLine } from "../../http/index.ts";
import { file_google_api_annotations } from "../gen/google/api/annotations_pb.ts";
import { file_google_api_field_behavior } from "../gen/google/api/field_behavior_pb.ts";
import { file_google_api_field_info } from "../gen/google/api/field_info_pb.ts";
import { file_google_api_http } from "../gen/google/api/http_pb.ts";
import { file_google_api_httpbody } from "../gen/google/api/httpbody_pb.ts";
import { joinNames } from "./validate-files.ts";

/** The result of {@link completeFiles}. Each file in `set` comes after the files that it imports. */
interface CompleteFiles {
  readonly set: FileDescriptorSet;
  /** The reason why a service cannot be served, by the service's full name. */
  readonly omitted: ReadonlyMap<string, string>;
  /** The missing imported files that probably declare the missing types. */
  readonly missingFiles: ReadonlySet<string>;
}

/**
 * Completes files with distinct names, so that registries accept the files even if some imports are missing. Yields
 * after each message and service.
 *
 * Well-known files are added. Fields with a missing type are removed. A service is omitted if its messages contain a
 * removed field, because the messages would be read incompletely. Options from a missing file are ignored. Missing JSON
 * names, which servers in C++, Java and Python do not send, are derived from the field names.
 *
 * @throws Error for files that import each other
 */
export function* completeFiles(input: readonly FileDescriptorProto[]): Generator<number, CompleteFiles> {
  const files = new Map(input.map((file) => [file.name, file]));
  // The loop also visits the files that it adds.
  for (const [, { dependency }] of files) {
    for (const name of dependency) {
      const knownFileOrNone = files.has(name) ? undefined : knownFile(name);
      if (knownFileOrNone !== undefined) files.set(name, knownFileOrNone);
    }
  }
  const types = new TypeIndex(files);
  yield* types.index();
  const complete: FileDescriptorProto[] = [];
  for (const file of files.values()) complete.push(yield* types.withoutMissingTypes(file));
  const set = sortFiles(new Map(complete.map((file) => [file.name, file])));
  return { set, ...(yield* types.incompleteServices()) };
}

/** Maximum missing imports that are searched per file. The limit bounds the time for a hostile set. */
const maxMissingImports = 30;

interface MissingType {
  readonly typeName: string;
  /** The message that has a field of this type, or `undefined` for a request or response type. */
  readonly user?: string;
}

/** An index of the types that files declare, by full name. Finds the types that are missing. */
class TypeIndex {
  readonly #files: ReadonlyMap<string, FileDescriptorProto>;
  readonly #fileOf = new Map<string, string>();
  readonly #messages = new Map<string, DescriptorProto>();

  constructor(files: ReadonlyMap<string, FileDescriptorProto>) {
    this.#files = files;
  }

  *index(): Generator<number, void> {
    for (const file of this.#files.values()) {
      const messages = file.messageType.map((message) => ({ message, scope: file.package }));
      for (const { name } of file.enumType) this.#fileOf.set(joinNames(file.package, name), file.name);
      for (const { message, scope } of messages) {
        const typeName = joinNames(scope, message.name);
        this.#fileOf.set(typeName, file.name);
        this.#messages.set(typeName, message);
        for (const { name } of message.enumType) this.#fileOf.set(joinNames(typeName, name), file.name);
        messages.push(...message.nestedType.map((nested) => ({ message: nested, scope: typeName })));
        yield 0;
      }
    }
    // A map entry counts as missing if the value's type is missing, because an entry must have a value.
    for (const [typeName, message] of this.#messages) {
      if (message.options?.mapEntry === true && this.#missingIn(message) !== undefined) {
        this.#fileOf.delete(typeName);
      }
    }
  }

  /** Copies a file without the elements that refer to a missing type. The copy imports all files that it needs. */
  *withoutMissingTypes(file: FileDescriptorProto): Generator<number, FileDescriptorProto> {
    const needed = new Set<string>();
    const isDeclared = (typeName: string): boolean => {
      const declaring = this.#fileOf.get(withoutLeadingDot(typeName));
      if (declaring !== undefined && declaring !== file.name) needed.add(declaring);
      return declaring !== undefined;
    };
    const completeFields = (fields: readonly FieldDescriptorProto[]): FieldDescriptorProto[] =>
      fields
        .filter(({ typeName, extendee }) => [typeName, extendee].every((name) => name === "" || isDeclared(name)))
        .map((field) => (field.jsonName === "" ? copyWith(field, { jsonName: protoCamelCase(field.name) }) : field));
    const completeMessage = (message: DescriptorProto, scope: string): DescriptorProto => {
      const typeName = joinNames(scope, message.name);
      const nested = message.nestedType.filter(({ name }) => this.#fileOf.has(joinNames(typeName, name)));
      return copyWith(message, {
        field: completeFields(message.field),
        extension: completeFields(message.extension),
        nestedType: nested.map((each) => completeMessage(each, typeName)),
      });
    };
    const messageType: DescriptorProto[] = [];
    for (const message of file.messageType) {
      messageType.push(completeMessage(message, file.package));
      yield 0;
    }
    // Creating these lists also collects the required imports in `needed`.
    const parts = {
      messageType,
      extension: completeFields(file.extension),
      service: file.service.filter(({ method }) =>
        method.every(({ inputType, outputType }) => isDeclared(inputType) && isDeclared(outputType)),
      ),
    };
    const imported = file.dependency.filter((name) => this.#files.has(name));
    const dependency = [...new Set([...imported, ...needed])];
    return copyWith(file, { ...parts, dependency, publicDependency: [], weakDependency: [] });
  }

  /** Returns the services that need a missing type, each with the reason, and the files that may declare the types. */
  *incompleteServices(): Generator<number, Omit<CompleteFiles, "set">> {
    const omitted = new Map<string, string>();
    const missingFiles = new Set<string>();
    const missingImports = new Map(
      [...this.#files.values()].map(({ name, dependency }) => [
        name,
        dependency
          .filter((each) => !this.#files.has(each))
          .slice(0, maxMissingImports)
          .map(toShortLine),
      ]),
    );
    for (const file of this.#files.values()) {
      for (const { name, method } of file.service) {
        yield 0;
        const missing = this.#findMissingType(
          method.flatMap(({ inputType, outputType }) => [withoutLeadingDot(inputType), withoutLeadingDot(outputType)]),
        );
        if (missing === undefined) continue;
        const typeName = toShortLine(missing.typeName);
        const importer = this.#fileOf.get(missing.user ?? "") ?? file.name;
        const names = (missingImports.get(importer) ?? []).filter((each) => mayDeclare(each, typeName));
        for (const each of names) missingFiles.add(each);
        const place = missing.user === undefined ? "" : ` of a field of ${toShortLine(missing.user)}`;
        const imports = names.length === 0 ? "" : `; missing import: ${toShortLine(names.join(", "))}`;
        omitted.set(joinNames(file.package, name), `the type ${typeName}${place} is missing${imports}`);
      }
    }
    return { omitted, missingFiles };
  }

  /** Searches messages and their fields' messages, recursively, for a missing type. */
  #findMissingType(typeNames: readonly string[]): MissingType | undefined {
    const reached = new Set(typeNames);
    // The loop also visits the types that it adds.
    for (const typeName of reached) {
      if (!this.#fileOf.has(typeName) && !this.#messages.has(typeName)) return { typeName };
      const message = this.#messages.get(typeName);
      const missing = message && this.#missingIn(message);
      if (missing !== undefined) return { typeName: missing, user: typeName };
      for (const field of message?.field ?? [])
        if (field.typeName !== "") reached.add(withoutLeadingDot(field.typeName));
    }
    return undefined;
  }

  /** Returns the first field type that no file declares. A map's entry type is in the message, so it is declared. */
  #missingIn({ field: fields }: DescriptorProto): string | undefined {
    const names = fields.map(({ typeName }) => withoutLeadingDot(typeName));
    return names.find((name) => name !== "" && !this.#fileOf.has(name) && !this.#messages.has(name));
  }
}

/** Returns whether a file is in the folder for a type's package, where compilers expect the type. */
function mayDeclare(file: string, typeName: string): boolean {
  return typeName.replaceAll(".", "/").startsWith(file.slice(0, file.lastIndexOf("/") + 1));
}

/** Copies a message with changed values and the same prototype, which has the proto2 defaults. */
export function copyWith<Copied extends object>(message: Copied, changes: Partial<Copied>): Copied {
  const prototype: object | null = Object.getPrototypeOf(message);
  const copy: Copied = Object.create(prototype);
  return Object.assign(copy, message, changes);
}

function withoutLeadingDot(typeName: string): string {
  return typeName.startsWith(".") ? typeName.slice(1) : typeName;
}

const known: readonly DescFile[] = [
  file_google_api_annotations,
  file_google_api_field_behavior,
  file_google_api_field_info,
  file_google_api_http,
  file_google_api_httpbody,
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
];

/** Finds a well-known file by name. A server's reflection may lack a well-known file that other files import. */
export function knownFile(name: string): FileDescriptorProto | undefined {
  return known.find(({ proto }) => proto.name === name)?.proto;
}

/** Maximum length of an import chain, which protects the stack. Google's APIs need a tenth of this limit. */
const maxImportDepth = 200;

/**
 * Sorts files so that each file comes after its imports, as registries require. The map must contain all imports.
 *
 * @throws Error for an import cycle, or imports that are nested too deep
 */
export function sortFiles(files: ReadonlyMap<string, FileDescriptorProto>): FileDescriptorSet {
  const sorted = new Set<FileDescriptorProto>();
  const visit = (name: string, importers: readonly string[]): void => {
    const file = files.get(name);
    if (file === undefined || sorted.has(file)) return;
    if (importers.includes(name)) {
      throw new Error(`import cycle: ${toShortLine([...importers.slice(importers.indexOf(name)), name].join(" -> "))}`);
    }
    if (importers.length >= maxImportDepth) {
      throw new Error(`imports are nested more than ${maxImportDepth} levels deep, at ${toShortLine(name)}`);
    }
    for (const imported of file.dependency) visit(imported, [...importers, name]);
    sorted.add(file);
  };
  for (const name of files.keys()) visit(name, []);
  return create(FileDescriptorSetSchema, { file: [...sorted] });
}
