import { createRegistry, type DescEnum, type DescMessage, type DescService, equals } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { messageOf, toShortLine, withCode } from "../../http/index.ts";

/** Maximum characters in a name, or in one segment of a package name. protoc has no limit for names. */
const maxName = 1_000;

/** Maximum fields in a message, or values in an enum. Java's generated code allows a third of the limit. */
const maxMembers = 10_000;

/** Maximum messages, enums and services in a set, several times as many as all Google APIs together have. */
const maxTypes = 200_000;

/** The largest field number. A MessageSet has 31-bit numbers, and other messages have 29-bit numbers. */
const maxFieldNumber = 2 ** 31 - 1;

// Matches `ident` in protobuf's grammar.
const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Checks the rules that protoc enforces, because another program may have created the files. Names must be identifiers.
 * Type names, field names and field numbers must be unique. Yields after each type. Returns the valid files.
 *
 * @param files - the files that {@link distinctFiles} returned
 * @param needed - the files in `files` that must be valid
 * @throws Error for the first problem in a needed file, or for too many types
 */
export function* validateFiles(
  files: readonly FileDescriptorProto[],
  needed: ReadonlySet<FileDescriptorProto>,
): Generator<number, readonly FileDescriptorProto[]> {
  const types = new Set<string>();
  const invalid = new Set<FileDescriptorProto>();
  // Needed files come first, so that other files cannot declare their type names first.
  for (const file of [...needed, ...files.filter((each) => !needed.has(each))]) {
    try {
      yield* validateFile(file, types);
    } catch (error) {
      if (needed.has(file) || types.size >= maxTypes) throw error;
      invalid.add(file);
    }
  }
  return files.filter((file) => !invalid.has(file));
}

/** Validates a file. @param types - the type names of earlier files. The function adds the file's type names */
function* validateFile(file: FileDescriptorProto, types: Set<string>): Generator<number, void> {
  const addType = (scope: string, name: string): string => {
    requireIdentifier(name);
    const typeName = joinNames(scope, name);
    if (types.size >= maxTypes) throw new Error(`there must be at most ${maxTypes} types`);
    if (types.has(typeName)) throw new Error(`${toShortLine(typeName)} is defined more than once`);
    types.add(typeName);
    return typeName;
  };
  if (file.package !== "") file.package.split(".").forEach(requireIdentifier);
  // The loop below also visits the messages that it adds.
  const messages = file.messageType.map((message) => ({ message, scope: file.package }));
  const enums = file.enumType.map((desc) => ({ desc, scope: file.package }));
  for (const { message, scope } of messages) {
    const typeName = addType(scope, message.name);
    validateMessage(message, typeName);
    messages.push(...message.nestedType.map((nested) => ({ message: nested, scope: typeName })));
    enums.push(...message.enumType.map((desc) => ({ desc, scope: typeName })));
    yield 0;
  }
  for (const { desc, scope } of enums) {
    validateEnum(desc, addType(scope, desc.name));
    yield 0;
  }
  for (const service of file.service) {
    yield 0;
    const typeName = addType(file.package, service.name);
    requireDistinct(
      service.method.map(({ name }) => name),
      typeName,
    );
  }
  for (const { name } of file.extension) requireIdentifier(name);
}

/** Returns the full name of a type in a scope. The scope is a package or another type. */
export function joinNames(scope: string, name: string): string {
  return scope === "" ? name : `${scope}.${name}`;
}

/** Returns each file once, without placeholders. @throws Error for a missing name, or different files with one name */
export function distinctFiles(files: readonly FileDescriptorProto[]): readonly FileDescriptorProto[] {
  const byName = new Map<string, FileDescriptorProto>();
  for (const file of files) {
    if (isPlaceholder(file)) continue;
    const earlierFile = byName.get(file.name);
    if (file.name === "") throw new Error("a file has no name");
    if (earlierFile !== undefined && !equals(FileDescriptorProtoSchema, earlierFile, file, withCustomOptions)) {
      const problem = `file ${toShortLine(file.name)} is defined more than once with different contents`;
      throw withCode(new Error(problem), "ERR_DESCRIPTORS");
    }
    byName.set(file.name, file);
  }
  return [...byName.values()];
}

/** Compares custom options too, such as HTTP and visibility rules, which are unknown fields. */
const withCustomOptions = { registry: createRegistry(), unknown: true };

/** Returns whether a file is a placeholder for a missing file, with an unknown syntax such as `<unknown:0>` in Go. */
export function isPlaceholder({ syntax, messageType, enumType, extension, service }: FileDescriptorProto): boolean {
  const declared = [messageType, enumType, extension, service];
  return !["", "proto2", "proto3", "editions"].includes(syntax) && declared.every(({ length }) => length === 0);
}

/** Checks a message's fields, oneofs and extensions, but no nested types. @throws Error that names the first problem */
function validateMessage({ field: fields, oneofDecl, extension }: DescriptorProto, typeName: string): void {
  if (fields.length > maxMembers) throw new Error(`${toShortLine(typeName)} has more than ${maxMembers} fields`);
  requireDistinct(
    fields.map(({ name }) => name),
    typeName,
  );
  requireDistinct(
    oneofDecl.map(({ name }) => name),
    typeName,
  );
  for (const { name } of extension) requireIdentifier(name);
  const numbers = new Set<number>();
  for (const { name, number } of fields) {
    const field = `field ${toShortLine(name)} of ${toShortLine(typeName)}`;
    if (number < 1 || number > maxFieldNumber)
      throw new Error(`the number of ${field} must be between 1 and ${maxFieldNumber}, got ${number}`);
    if (numbers.has(number)) throw new Error(`${field} has number ${number}, which another field has already`);
    numbers.add(number);
  }
}

/** Checks an enum's values. @throws Error that names the first problem */
function validateEnum({ value: values }: EnumDescriptorProto, typeName: string): void {
  if (values.length > maxMembers) throw new Error(`${toShortLine(typeName)} has more than ${maxMembers} values`);
  if (values.length === 0) throw new Error(`${toShortLine(typeName)} has no values`);
  requireDistinct(
    values.map(({ name }) => name),
    typeName,
  );
}

/** Checks that a type's members have valid and unique names. @throws Error that names the first problem */
function requireDistinct(names: readonly string[], owner: string): void {
  const seen = new Set<string>();
  for (const name of names) {
    requireIdentifier(name);
    if (seen.has(name)) throw new Error(`${toShortLine(owner)} has more than one member named ${toShortLine(name)}`);
    seen.add(name);
  }
}

/** Checks a name. @throws Error for a name that is not a protobuf identifier, or too long */
function requireIdentifier(name: string): void {
  if (name.length > maxName)
    throw new Error(`a name must not be longer than ${maxName} characters, got ${toShortLine(name)}`);
  if (!identifier.test(name)) throw new Error(`${JSON.stringify(toShortLine(name))} is not a protobuf identifier`);
}

/**
 * Checks services and all types that their messages use, as `validateFiles` does, because the descriptors may not come
 * from protoc. Fields must have JSON names, which server reflection in C++, Java and Python leaves out.
 *
 * @throws Error that names the first problem
 */
export function validateServices(services: Iterable<DescService>): void {
  try {
    validate(services);
  } catch (error) {
    throw withCode(new Error(`cannot use the descriptors: ${messageOf(error)}`), "ERR_DESCRIPTORS");
  }
}

function validate(services: Iterable<DescService>): void {
  const messages = new Set<DescMessage>();
  const enums = new Set<DescEnum>();
  for (const { typeName, methods } of services) {
    typeName.split(".").forEach(requireIdentifier);
    requireDistinct(
      methods.map(({ name }) => name),
      typeName,
    );
    for (const { input, output } of methods) messages.add(input).add(output);
  }
  for (const { proto, typeName, fields } of messages) {
    typeName.split(".").forEach(requireIdentifier);
    validateMessage(proto, typeName);
    for (const { name, jsonName, message, enum: ofEnum } of fields) {
      if (jsonName === "") throw new Error(`field ${toShortLine(name)} of ${toShortLine(typeName)} has no JSON name`);
      if (message !== undefined) messages.add(message);
      if (ofEnum !== undefined) enums.add(ofEnum);
    }
  }
  for (const { proto, typeName } of enums) validateEnum(proto, typeName);
}
