import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import type {
  DescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
  FileDescriptorSet,
} from "@bufbuild/protobuf/wkt";
import { clipped } from "../errors/index.ts";
import { knownFile } from "./known-files.ts";
import { sortFiles } from "./sort-files.ts";
import { joined } from "./validate-files.ts";

/** Files of which each type that they name is in one of them, and each after those that it needs. */
interface FilledFiles {
  readonly set: FileDescriptorSet;
  /** Why services cannot be served, by their full names. */
  readonly omitted: ReadonlyMap<string, string>;
}

/**
 * Makes files a definition that registries accept, although some of what they import is missing.
 *
 * Files that everybody has are added. Fields of a missing type are removed, and the services whose messages have such a
 * field inside are named: what is left of these messages would be read as less than they are. Options of a missing file
 * are unknown fields of descriptor.proto, and do not matter. Servers in C++, Java and Python leave out the JSON names of
 * fields, which follow from the others.
 *
 * @param given - files of different names
 * @throws Error for files that import each other
 */
export function fillHoles(given: readonly FileDescriptorProto[]): FilledFiles {
  const files = new Map(given.map((file) => [file.name, file]));
  // Iterating over a map includes what is added to it meanwhile.
  for (const [, { dependency }] of files) {
    for (const name of dependency) {
      const known = files.has(name) ? undefined : knownFile(name);
      if (known !== undefined) files.set(name, known);
    }
  }
  const types = new TypeIndex(files);
  const filled = [...files.values()].map((file) => types.withoutHoles(file));
  const set = sortFiles(new Map(filled.map((file) => [file.name, file])));
  return { set, omitted: types.servicesWithHoles() };
}

/** The types that files declare, by their full names, and what each message lacks. */
class TypeIndex {
  readonly #files: ReadonlyMap<string, FileDescriptorProto>;
  readonly #fileOf = new Map<string, string>();
  readonly #messages = new Map<string, DescriptorProto>();

  constructor(files: ReadonlyMap<string, FileDescriptorProto>) {
    this.#files = files;
    for (const file of files.values()) {
      const messages = file.messageType.map((message) => ({ message, scope: file.package }));
      for (const { name } of file.enumType) this.#fileOf.set(joined(file.package, name), file.name);
      for (const { message, scope } of messages) {
        const typeName = joined(scope, message.name);
        this.#fileOf.set(typeName, file.name);
        this.#messages.set(typeName, message);
        for (const { name } of message.enumType) this.#fileOf.set(joined(typeName, name), file.name);
        messages.push(...message.nestedType.map((nested) => ({ message: nested, scope: typeName })));
      }
    }
    // An entry of a map is nothing without its value.
    for (const [typeName, message] of this.#messages) {
      if (message.options?.mapEntry === true && this.#holeIn(message) !== undefined) {
        this.#fileOf.delete(typeName);
      }
    }
  }

  /** Returns a file without what names a missing type, and with all files that it needs as imports. */
  withoutHoles(file: FileDescriptorProto): FileDescriptorProto {
    const needed = new Set<string>();
    const isWhole = (typeName: string): boolean => {
      const declaring = this.#fileOf.get(bare(typeName));
      if (declaring !== undefined && declaring !== file.name) needed.add(declaring);
      return declaring !== undefined;
    };
    const filledFields = (fields: readonly FieldDescriptorProto[]): FieldDescriptorProto[] =>
      fields
        .filter(({ typeName, extendee }) => [typeName, extendee].every((name) => name === "" || isWhole(name)))
        .map((field) => (field.jsonName === "" ? changed(field, { jsonName: protoCamelCase(field.name) }) : field));
    const fillMessage = (message: DescriptorProto, scope: string): DescriptorProto => {
      const typeName = joined(scope, message.name);
      const nested = message.nestedType.filter(({ name }) => this.#fileOf.has(joined(typeName, name)));
      return changed(message, {
        field: filledFields(message.field),
        extension: filledFields(message.extension),
        nestedType: nested.map((each) => fillMessage(each, typeName)),
      });
    };
    // What the types of the file need is found by all of these.
    const parts = {
      messageType: file.messageType.map((message) => fillMessage(message, file.package)),
      extension: filledFields(file.extension),
      service: file.service.filter(({ method }) =>
        method.every(({ inputType, outputType }) => isWhole(inputType) && isWhole(outputType)),
      ),
    };
    const imported = file.dependency.filter((name) => this.#files.has(name));
    const dependency = [...new Set([...imported, ...needed])];
    return changed(file, { ...parts, dependency, publicDependency: [], weakDependency: [] });
  }

  /** Returns the services that need a missing type, each with which. */
  servicesWithHoles(): ReadonlyMap<string, string> {
    const omitted = new Map<string, string>();
    for (const file of this.#files.values()) {
      for (const { name, method } of file.service) {
        const hole = this.#holeBelow(
          method.flatMap(({ inputType, outputType }) => [bare(inputType), bare(outputType)]),
        );
        if (hole !== undefined) omitted.set(joined(file.package, name), hole);
      }
    }
    return omitted;
  }

  /** Finds a type that is missing inside messages. */
  #holeBelow(typeNames: readonly string[]): string | undefined {
    const reached = new Set(typeNames);
    // Iterating over a set includes what is added to it meanwhile.
    for (const typeName of reached) {
      if (!this.#fileOf.has(typeName) && !this.#messages.has(typeName))
        return `the type ${clipped(typeName)} is missing`;
      const message = this.#messages.get(typeName);
      const hole = message && this.#holeIn(message);
      if (hole !== undefined) return `the type ${clipped(hole)} of a field of ${clipped(typeName)} is missing`;
      for (const field of message?.field ?? []) if (field.typeName !== "") reached.add(bare(field.typeName));
    }
    return undefined;
  }

  /** Finds a type of a field that no file declares. A map has the type of its entry, which is declared with it. */
  #holeIn({ field: fields }: DescriptorProto): string | undefined {
    const names = fields.map(({ typeName }) => bare(typeName));
    return names.find((name) => name !== "" && !this.#fileOf.has(name) && !this.#messages.has(name));
  }
}

/** Returns a copy of a message with other values. Its prototype has the defaults of proto2. */
function changed<Changed extends object>(message: Changed, changes: Partial<Changed>): Changed {
  const prototype: object | null = Object.getPrototypeOf(message);
  const copy: Changed = Object.create(prototype);
  return Object.assign(copy, message, changes);
}

/** Returns a type name without the dot that says that it is a full one. */
function bare(typeName: string): string {
  return typeName.startsWith(".") ? typeName.slice(1) : typeName;
}
