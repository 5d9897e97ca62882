import { type DescField, type DescMessage, toJson } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  type BoundFields,
  createUrlEntryParser,
  createUrlTextParser,
  FieldProblem,
  findField,
  type FieldValues,
  type LocalForm,
  localFormOf,
  parseGoDuration,
  quoteValue,
  readJson,
  UnknownNames,
  problem,
} from "../../../protobuf/index.ts";
import {
  createPathSetter,
  type FieldPath,
  leafOf,
  printFieldPath,
  resolveDottedPath,
  resolveFieldPath,
} from "./field-path.ts";

/** The message fields that query parameters may set. */
export interface ParameterBinding {
  readonly message: DescMessage;
  /** The fields that the path or the body sets, so query parameters must not set these fields. */
  readonly boundFields: BoundFields;
  /**
   * Whether parameters for unknown or bound fields are ignored and reported instead of refused. An unknown enum name is
   * always refused, because a list or deletion without its filter would include too many items.
   */
  readonly lenient: boolean;
  /** Whether `labels[color]=red` sets an entry of a map. */
  readonly acceptsMaps: boolean;
  /** Whether a parameter may set a Struct, a Value or a ListValue to JSON. */
  readonly acceptsStructs: boolean;
  /** Whether durations may be in Go's format. */
  readonly acceptsGoDurations: boolean;
}

/** The field that a parameter sets. For a map field, `key` is the entry's key. */
interface Parameter {
  readonly path: FieldPath;
  readonly key: string | undefined;
}

interface ParameterResults {
  readonly fields: FieldValues;
  /** The paths of the fields that parameters have set, including the keys of map entries. */
  readonly paths: Set<string>;
  readonly unknown: UnknownNames;
}

/**
 * Sets a field to the value of a string. Adds the name of an unknown field to `unknown`.
 *
 * @param parameter - the result of {@link resolveParameter}
 * @throws ConnectError `InvalidArgument` that names the parameter, for an invalid value, or for a parameter such as
 * `size.max` if `size` is not a message
 */
export function setParameter(
  binding: ParameterBinding,
  parameter: Parameter | undefined,
  name: string,
  value: string,
  { fields, paths, unknown }: ParameterResults,
): void {
  if (parameter === undefined) {
    const withoutFields = findFieldWithoutFields(binding, name);
    if (withoutFields === undefined) return unknown.addField(name);
    const reason = `${withoutFields.name} is not a message`;
    throw problem("ERR_QUERY_INVALID", `query parameter ${quoteValue(name)} is not valid: ${reason}`);
  }
  const { path, key } = parameter;
  const leaf = leafOf(path);
  try {
    const parsed = parseParameter(binding, leaf, key, value);
    const fullPath = `${printFieldPath(path)}${key === undefined ? "" : `[${key}]`}`;
    if (leaf.fieldKind !== "list" && paths.has(fullPath)) {
      throw problem("ERR_QUERY_INVALID", `query parameter ${quoteValue(name)} is set more than once`);
    }
    paths.add(fullPath);
    createPathSetter(path)(fields, parsed);
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    throw problem("ERR_QUERY_INVALID", `query parameter ${quoteValue(name)} is not valid: ${error.message}`);
  }
}

/** Maximum names in a parameter's dotted path, which is the recursion limit for protobuf messages. */
export const maxParameterNames = 100;

/** Maximum opening brackets that are tried as the start of a map key. JSON names of fields contain fewer brackets. */
const maxBrackets = 8;

/**
 * Finds a parameter's field. Returns `undefined` for an unknown field, or if a lenient binding ignores the parameter.
 * @throws ConnectError if the path or the body already sets the field
 */
export function resolveParameter(binding: ParameterBinding, name: string): Parameter | undefined {
  const found = findNamed(binding.message, name, binding.acceptsMaps);
  if (found === undefined) return undefined;
  let bound: BoundFields | "whole" | undefined = binding.boundFields;
  for (const field of found.path) {
    bound = bound.get(field);
    if (bound === undefined) return found;
    if (bound !== "whole") continue;
    if (binding.lenient) return undefined;
    throw problem("ERR_QUERY_INVALID", `query parameter ${quoteValue(name)} is already set by the path or the body`, {
      option: "lenient",
    });
  }
  return found;
}

/**
 * Returns the name of the parameter that sets a field, without the key of a map. The name joins the JSON names with
 * dots, or the proto names if the JSON names resolve to another field.
 *
 * @param nameOf - returns a field's JSON name
 * @returns `undefined` if JSON names and proto names both resolve to other fields
 */
export function parameterNameOf(
  message: DescMessage,
  path: FieldPath,
  nameOf: (field: DescField) => string,
): string | undefined {
  const [suffix, key] = leafOf(path).fieldKind === "map" ? ["[key]", "key"] : ["", undefined];
  return [path.map(nameOf).join("."), printFieldPath(path)].find((name) => {
    const found = findNamed(message, name + suffix, true);
    return found?.key === key && path.every((field, at) => field === found?.path[at]);
  });
}

function findNamed(message: DescMessage, name: string, acceptsMaps: boolean): Parameter | undefined {
  const entry = acceptsMaps && name.endsWith("]") ? findEntry(message, name) : undefined;
  const path = entry === undefined ? findPath(message, name) : undefined;
  return entry ?? (path && { path, key: undefined });
}

/** Returns whether a name sets a map entry, which only {@link ParameterBinding.acceptsMaps} allows. */
export function isMapEntry({ message }: ParameterBinding, name: string): boolean {
  return name.endsWith("]") && findEntry(message, name) !== undefined;
}

function findEntry(message: DescMessage, name: string): Parameter | undefined {
  let bracket = name.indexOf("[");
  for (let attempts = 0; bracket >= 0 && attempts < maxBrackets; attempts += 1) {
    const path = findPath(message, name.slice(0, bracket));
    if (path !== undefined && leafOf(path).fieldKind === "map") return { path, key: name.slice(bracket + 1, -1) };
    bracket = name.indexOf("[", bracket + 1);
  }
  return undefined;
}

/**
 * Returns the first field in a dotted name that is not a message, such as `size` in `crop.size.max`. A newer definition
 * cannot add a field inside this field. Fields that the path or the body sets are not checked.
 */
function findFieldWithoutFields({ message, boundFields }: ParameterBinding, name: string): DescField | undefined {
  let parent: DescMessage | undefined = message;
  for (const part of name.split(".", maxParameterNames).slice(0, -1)) {
    const field: DescField | undefined = findField(parent, part);
    if (field === undefined || boundFields.has(field)) return undefined;
    if (field.fieldKind !== "message") return field;
    parent = field.message;
  }
  return undefined;
}

function findPath(message: DescMessage, name: string): FieldPath | undefined {
  const names = name.split(".");
  if (names.length > maxParameterNames) return undefined;
  // Almost no JSON name contains a dot, so the cheaper lookup comes first.
  return resolveFieldPath(message, names) ?? resolveDottedPath(message, names);
}

/** Returns the value of a field or of one list element. For a map, returns an entry's key and value. */
function parseParameter(binding: ParameterBinding, leaf: DescField, key: string | undefined, text: string): unknown {
  if (leaf.fieldKind === "map") {
    const parseEntry = key === undefined ? undefined : createUrlEntryParser(leaf);
    if (parseEntry !== undefined && key !== undefined) return parseEntry(key, text);
  }
  if (leaf.fieldKind !== "map" && leaf.message !== undefined) {
    const { typeName } = leaf.message;
    if (binding.acceptsStructs && structTypes.has(typeName)) return parseStruct(leaf.message, localFormOf(leaf), text);
    const isDuration = binding.acceptsGoDurations && typeName === "google.protobuf.Duration";
    const duration = isDuration ? parseGoDuration(text) : undefined;
    if (duration !== undefined) return duration;
  }
  const parse = createUrlTextParser(leaf);
  if (parse === undefined) throw new FieldProblem("its field cannot be set in a query");
  return parse(text);
}

const structTypes: ReadonlySet<string> = new Set(
  ["Struct", "Value", "ListValue"].map((name) => `google.protobuf.${name}`),
);

function parseStruct(desc: DescMessage, form: LocalForm, text: string): unknown {
  try {
    const message = readJson(desc, text);
    return form === "json-object" ? toJson(desc, message) : message;
  } catch (error) {
    throw new FieldProblem(
      `${quoteValue(text)} is not the JSON of a ${desc.typeName}: ${ConnectError.from(error).rawMessage}`,
    );
  }
}
