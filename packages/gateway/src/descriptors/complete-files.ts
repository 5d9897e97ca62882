import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import type {
  DescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
  FileDescriptorSet,
} from "@bufbuild/protobuf/wkt";
import { toShortLine } from "../errors/index.ts";
import { knownFile } from "./known-files.ts";
import { sortFiles } from "./sort-files.ts";
import { joinNames } from "./validate-files.ts";

/** Files that define every type they refer to, each after the files that it imports. */
interface CompleteFiles {
  readonly set: FileDescriptorSet;
  /** The reasons why services cannot be served, by their full names. */
  readonly omitted: ReadonlyMap<string, string>;
}

/**
 * Turns files into a definition that registries accept, even if some imported files are missing.
 *
 * Well-known files are added. Fields of a missing type are removed, and the services whose messages contain such a
 * field are omitted, because those messages would be read incompletely. Options that a missing file declares are
 * unknown fields of descriptor.proto, and are ignored. The JSON names of fields, which servers in C++, Java and Python
 * leave out, are derived from the field names.
 *
 * @param input - files, each with a different name
 * @throws Error for files that import each other
 */
export function completeFiles(input: readonly FileDescriptorProto[]): CompleteFiles {
  const files = new Map(input.map((file) => [file.name, file]));
  // The loop also visits the files that it adds.
  for (const [, { dependency }] of files) {
    for (const name of dependency) {
      const knownFileOrNone = files.has(name) ? undefined : knownFile(name);
      if (knownFileOrNone !== undefined) files.set(name, knownFileOrNone);
    }
  }
  const types = new TypeIndex(files);
  const complete = [...files.values()].map((file) => types.withoutMissingTypes(file));
  const set = sortFiles(new Map(complete.map((file) => [file.name, file])));
  return { set, omitted: types.incompleteServices() };
}

/** The types that files declare, by their full names, and the missing types that messages refer to. */
class TypeIndex {
  readonly #files: ReadonlyMap<string, FileDescriptorProto>;
  readonly #fileOf = new Map<string, string>();
  readonly #messages = new Map<string, DescriptorProto>();

  constructor(files: ReadonlyMap<string, FileDescriptorProto>) {
    this.#files = files;
    for (const file of files.values()) {
      const messages = file.messageType.map((message) => ({ message, scope: file.package }));
      for (const { name } of file.enumType) this.#fileOf.set(joinNames(file.package, name), file.name);
      for (const { message, scope } of messages) {
        const typeName = joinNames(scope, message.name);
        this.#fileOf.set(typeName, file.name);
        this.#messages.set(typeName, message);
        for (const { name } of message.enumType) this.#fileOf.set(joinNames(typeName, name), file.name);
        messages.push(...message.nestedType.map((nested) => ({ message: nested, scope: typeName })));
      }
    }
    // A map entry whose value has a missing type counts as missing, because an entry must have a value.
    for (const [typeName, message] of this.#messages) {
      if (message.options?.mapEntry === true && this.#missingIn(message) !== undefined) {
        this.#fileOf.delete(typeName);
      }
    }
  }

  /**
   * Returns a copy of a file without the elements that refer to a missing type. The copy imports all files that it
   * needs.
   */
  withoutMissingTypes(file: FileDescriptorProto): FileDescriptorProto {
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
    // This also fills `needed`.
    const parts = {
      messageType: file.messageType.map((message) => completeMessage(message, file.package)),
      extension: completeFields(file.extension),
      service: file.service.filter(({ method }) =>
        method.every(({ inputType, outputType }) => isDeclared(inputType) && isDeclared(outputType)),
      ),
    };
    const imported = file.dependency.filter((name) => this.#files.has(name));
    const dependency = [...new Set([...imported, ...needed])];
    return copyWith(file, { ...parts, dependency, publicDependency: [], weakDependency: [] });
  }

  /** Returns the services that need a missing type, each with the reason. */
  incompleteServices(): ReadonlyMap<string, string> {
    const omitted = new Map<string, string>();
    for (const file of this.#files.values()) {
      for (const { name, method } of file.service) {
        const reason = this.#findMissingType(
          method.flatMap(({ inputType, outputType }) => [withoutLeadingDot(inputType), withoutLeadingDot(outputType)]),
        );
        if (reason !== undefined) omitted.set(joinNames(file.package, name), reason);
      }
    }
    return omitted;
  }

  /**
   * Searches messages, and the messages inside them, for a missing type. Returns the reason for omitting their service;
   * `undefined` if no type is missing.
   */
  #findMissingType(typeNames: readonly string[]): string | undefined {
    const reached = new Set(typeNames);
    // The loop also visits the types that it adds.
    for (const typeName of reached) {
      if (!this.#fileOf.has(typeName) && !this.#messages.has(typeName))
        return `the type ${toShortLine(typeName)} is missing`;
      const message = this.#messages.get(typeName);
      const missing = message && this.#missingIn(message);
      if (missing !== undefined)
        return `the type ${toShortLine(missing)} of a field of ${toShortLine(typeName)} is missing`;
      for (const field of message?.field ?? [])
        if (field.typeName !== "") reached.add(withoutLeadingDot(field.typeName));
    }
    return undefined;
  }

  /**
   * Returns the first field type that no file declares. The entry type of a map is always declared, because it is part
   * of the message.
   */
  #missingIn({ field: fields }: DescriptorProto): string | undefined {
    const names = fields.map(({ typeName }) => withoutLeadingDot(typeName));
    return names.find((name) => name !== "" && !this.#fileOf.has(name) && !this.#messages.has(name));
  }
}

/** Returns a copy of a message with changed values and the same prototype, which has the defaults of proto2. */
function copyWith<Copied extends object>(message: Copied, changes: Partial<Copied>): Copied {
  const prototype: object | null = Object.getPrototypeOf(message);
  const copy: Copied = Object.create(prototype);
  return Object.assign(copy, message, changes);
}

/** Returns a type name without the leading dot of a fully qualified name. */
function withoutLeadingDot(typeName: string): string {
  return typeName.startsWith(".") ? typeName.slice(1) : typeName;
}
