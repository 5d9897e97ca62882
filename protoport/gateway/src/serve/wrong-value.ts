import { type DescField, type DescMessage, isMessage, ScalarType } from "@bufbuild/protobuf";
import { integerRangeOf, localFormOf } from "../protobuf/index.ts";
import { Envelope, type Rpc } from "../protocols/index.ts";

/**
 * Returns the error to report for a response that cannot be written. If a value in the response has a wrong type, the
 * new error names the procedure and the field, and has `error` as its cause. Otherwise, returns `error`.
 */
export function explainUnwritable(
  error: unknown,
  { name, method }: Rpc,
  response: { readonly message: unknown },
): unknown {
  const problem = findProblem(method.output, response);
  return problem === undefined ? error : new TypeError(`the response of ${name}: ${problem}`, { cause: error });
}

function findProblem(desc: DescMessage, response: { readonly message: unknown }): string | undefined {
  try {
    // A forwarder has encoded the message.
    if (response.message instanceof Envelope) return undefined;
    return messageProblem(desc, response.message, "");
  } catch {
    // A getter may throw, and a message that contains itself overflows the stack. An interceptor in JavaScript may
    // return no response.
    return undefined;
  }
}

function messageProblem(desc: DescMessage, message: unknown, path: string): string | undefined {
  if (!isMessage(message, desc)) return describeWrongValue(path, `a message of the type ${desc.typeName}`, message);
  for (const field of desc.fields) {
    const problem = fieldProblem(field, valueOf(field, message), `${path}${field.name}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Returns a field's value, or `undefined` if the field is not set. */
function valueOf({ oneof, localName }: DescField, message: object): unknown {
  if (oneof === undefined) return Reflect.get(message, localName);
  const { case: name, value }: { case?: unknown; value?: unknown } = Object(Reflect.get(message, oneof.localName));
  return name === localName ? value : undefined;
}

function fieldProblem(field: DescField, value: unknown, path: string): string | undefined {
  if (value === undefined) return undefined;
  if (field.fieldKind === "list") {
    if (!Array.isArray(value)) return describeWrongValue(path, "an array", value);
    return firstProblem(
      value.map((element: unknown, at) => [`${path}[${at}]`, element]),
      field,
    );
  }
  if (field.fieldKind === "map") {
    if (typeof value !== "object" || value === null) return describeWrongValue(path, "an object", value);
    return firstProblem(
      Object.entries(value).map(([key, one]) => [`${path}["${key}"]`, one]),
      field,
    );
  }
  return valueProblem(field, value, path);
}

function firstProblem(
  elements: readonly (readonly [path: string, element: unknown])[],
  field: DescField,
): string | undefined {
  for (const [path, element] of elements) {
    const problem = valueProblem(field, element, path);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function valueProblem(field: DescField, value: unknown, path: string): string | undefined {
  const { message } = field;
  if (message === undefined) return scalarProblem(field.scalar ?? ScalarType.INT32, value, path);
  switch (localFormOf({ ...field, message })) {
    case "json-object":
      return typeof value === "object" && value !== null ? undefined : describeWrongValue(path, "an object", value);
    case "unwrapped":
      return scalarProblem(message.fields[0]?.scalar ?? ScalarType.INT32, value, path);
    case "message":
      return messageProblem(message, value, `${path}.`);
  }
}

/** Returns the problem with a scalar or an enum value. Enum values are numbers, like int32. */
function scalarProblem(scalar: ScalarType, value: unknown, path: string): string | undefined {
  switch (scalar) {
    case ScalarType.STRING:
      return typeof value === "string" ? undefined : describeWrongValue(path, "a string", value);
    case ScalarType.BOOL:
      return typeof value === "boolean" ? undefined : describeWrongValue(path, "a boolean", value);
    case ScalarType.BYTES:
      return value instanceof Uint8Array ? undefined : describeWrongValue(path, "a Uint8Array", value);
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return typeof value === "number" ? undefined : describeWrongValue(path, "a number", value);
    default:
      return integerProblem(scalar, value, path);
  }
}

function integerProblem(scalar: ScalarType, value: unknown, path: string): string | undefined {
  const range = integerRangeOf(scalar);
  if (range === undefined) return undefined;
  const { name, min, max, isBigInt } = range;
  const integer = integerIn(value, isBigInt);
  const fits = integer !== undefined && integer >= min && integer <= max;
  return fits ? undefined : describeWrongValue(path, `of the type ${name}`, value);
}

/** Returns the integer for a value that protobuf-es accepts. A 64-bit integer may also be a bigint or a string. */
function integerIn(value: unknown, isLong: boolean): bigint | undefined {
  if (typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  if (!isLong) return undefined;
  if (typeof value === "bigint") return value;
  return typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : undefined;
}

function describeWrongValue(path: string, expected: string, value: unknown): string {
  const type = value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
  const field = path === "" ? "" : `${path.replace(/\.$/, "")} `;
  return `${field}must be ${expected}, got ${type}`;
}
