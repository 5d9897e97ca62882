import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescService,
  type Message,
  type Registry,
  setExtension,
} from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema, MessageOptionsSchema } from "@bufbuild/protobuf/wkt";
import type { Validator, Violation } from "@bufbuild/protovalidate";
import type { ConnectError } from "@connectrpc/connect";
import { refuseUnknownOptions, toShortLine, withCode } from "../http/index.ts";
import type { FieldRules } from "../openapi/index.ts";
import { BadRequestSchema } from "../protobuf/gen/google/rpc/error_details_pb.ts";
import { problem } from "../protobuf/index.ts";
import type { ProtocolName } from "../protocols/index.ts";
import type { Validation } from "../serve/index.ts";
import { FailedRules, findTypeErrors } from "./evaluation-error.ts";
import { DescribedRules } from "./field-rules.ts";
import { openTimeLimit, prepareLimited } from "./limited-rules.ts";
import { findRules, predefinedExpressions, type Protovalidate, type Rules } from "./rules.ts";

/** Options for {@link openValidation}. */
export interface ValidationOptions {
  /**
   * Whether the rules come from a server that is not trusted, such as a proxy's upstream with reflection. Untrusted
   * rules must be standard rules, and checking a message is interrupted after 300 ms. This option requires `node:vm`,
   * and checking a message takes about 0.15 ms longer. Default false.
   */
  readonly untrusted?: boolean;
}

type Checks = ReturnType<Validation["prepare"]>;

/**
 * Loads protovalidate, for the option `validation` of `createGateway` and `createOpenApi`. Each request message must
 * satisfy the `buf.validate` rules in its definition before the handler gets the message. An RE2 engine evaluates
 * regular expressions in linear time.
 *
 * A call with an invalid message fails with `InvalidArgument`. The error's details contain `buf.validate.Violations`
 * with up to 20 violations and, on REST, `google.rpc.BadRequest`. For a message with over 100 elements in lists and
 * maps, only the first violation is reported, because collecting all violations could take much more memory than the
 * message.
 *
 * `createGateway` throws an error that lists the rules that cannot be compiled. The error also lists CEL rules that
 * read an unknown field or use a value with a wrong type. If a rule's evaluation fails because of the message, for
 * example by a division by zero, the call fails with `InvalidArgument`, and the failure is reported to `onFault` once a
 * minute for each rule. With `untrusted`, `createGateway` also throws an error for a rule in CEL, or for more than
 * 2,000 fields and messages with rules.
 *
 * @throws Error if `@bufbuild/protovalidate`, an optional peer dependency, is not installed
 */
export async function openValidation(options: ValidationOptions = {}): Promise<Validation & FieldRules> {
  refuseUnknownOptions(options, { untrusted: true }, "openValidation");
  const { untrusted = false } = options;
  const [library, schemas] = await Promise.all([
    import("@bufbuild/protovalidate"),
    import("@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"),
  ]).catch(refuseMissing);
  const protovalidate: Protovalidate = { ...library, ...schemas };
  const limit = untrusted ? openTimeLimit() : undefined;
  return Object.assign(new DescribedRules(protovalidate, untrusted), {
    isUntrusted: untrusted,
    prepare: (services: readonly DescService[], registry: Registry) => {
      const prepare = (): Checks => prepareChecks(protovalidate, services, registry);
      if (limit === undefined) return prepare();
      const rules = findRules(inputsOf(services), protovalidate);
      const predefined = predefinedExpressions(registry, protovalidate);
      return prepareLimited({ ...rules, expressions: new Map([...predefined, ...rules.expressions]) }, limit, prepare);
    },
  });
}

function refuseMissing(reason: unknown): never {
  const isMissing =
    reason instanceof Error && /^Cannot find (?:module|package) '@bufbuild\/protovalidate/.test(reason.message);
  if (!isMissing) throw reason;
  const what = "validation requires protovalidate: npm install @bufbuild/protovalidate@^1.3.0";
  throw new Error(what, { cause: reason });
}

function prepareChecks(protovalidate: Protovalidate, services: readonly DescService[], registry: Registry): Checks {
  const { createValidator } = protovalidate;
  const first = createValidator({ registry, failFast: true });
  const all = createValidator({ registry });
  const rulesOf = new Map([...inputsOf(services)].map((type) => [type, findRules([type], protovalidate)]));
  refuseBrokenRules(protovalidate, all, rulesOf, predefinedExpressions(registry, protovalidate));
  // Compiles the rules, because interrupting a check that compiles them would leave a part of them in use.
  for (const type of rulesOf.keys()) first.validate(type, create(type));
  const failedRules = new FailedRules();
  return (type) => {
    if ((rulesOf.get(type)?.owners ?? 0) === 0) return undefined;
    return (message, { protocolName }) => {
      const { kind, error } = first.validate(type, message);
      if (kind === "valid") return;
      if (kind === "error") throw failedRules.errorFor(type, error);
      throw violationError(protovalidate, all, type, message, error.violations, protocolName);
    };
  };
}

function inputsOf(services: readonly DescService[]): ReadonlySet<DescMessage> {
  return new Set(services.flatMap(({ methods }) => methods.map(({ input }) => input)));
}

function refuseBrokenRules(
  protovalidate: Protovalidate,
  validator: Validator,
  rulesOf: ReadonlyMap<DescMessage, Rules>,
  predefined: ReadonlyMap<string, string>,
): void {
  const expressions = new Map([...predefined, ...[...rulesOf.values()].flatMap((rules) => [...rules.expressions])]);
  const problems = compileProblems(protovalidate, expressions);
  const compiled: Rules[] = [];
  for (const [type, rules] of problems.length === 0 ? rulesOf : []) {
    // Validating a message compiles the rules for all types that the message may contain.
    const { kind, error } = validator.validate(type, create(type));
    if (kind === "error" && error.name === "CompilationError") problems.push(`${type.typeName}: ${error.message}`);
    else compiled.push(rules);
  }
  problems.push(...findTypeErrors(validator, compiled, expressions));
  if (problems.length === 0) return;
  const list = problems.map((line) => `\n- ${toShortLine(line)}`).join("");
  throw withCode(new Error(`cannot use the validation rules:${list}`), "ERR_DESCRIPTORS");
}

/** Returns the compile errors of CEL expressions. Expressions are compiled by validating empty messages. */
function compileProblems(
  { createValidator, message: messageRules, MessageRulesSchema }: Protovalidate,
  ownerOf: ReadonlyMap<string, string>,
): string[] {
  const expressions = [...ownerOf.keys()];
  const file = create(FileDescriptorProtoSchema, {
    name: "probe.proto",
    syntax: "proto3",
    messageType: expressions.map((expression, index) => {
      const options = create(MessageOptionsSchema);
      setExtension(options, messageRules, create(MessageRulesSchema, { celExpression: [expression] }));
      return { name: `Probe${String(index)}`, options };
    }),
  });
  const registry = createFileRegistry(file, () => undefined);
  const validator = createValidator();
  return expressions.flatMap((expression, index) => {
    const probe = registry.getMessage(`Probe${String(index)}`);
    if (probe === undefined) return [];
    const { kind, error } = validator.validate(probe, create(probe));
    // A failed evaluation is not a problem, because the empty message has no fields.
    if (kind !== "error" || error.name !== "CompilationError") return [];
    return [`${ownerOf.get(expression)}: ${error.message}`];
  });
}

/** Maximum violations in error details, about 3 kB. gRPC sends details in header fields, often limited to 8 KiB. */
const maxViolations = 20;

/** Maximum characters in a listed violation's path and message. Violations of standard rules have fewer than 400. */
const maxViolationLength = 400;

/** Maximum list and map elements in a message whose violations are all collected. A violation takes 1 kB of memory. */
const maxElements = 100;

/**
 * Whether a protocol's clients get google.rpc.BadRequest too. RPC clients get only `buf.validate.Violations`, as
 * `@connectrpc/validate` sends them.
 */
const sendsBadRequest: Readonly<Record<string, boolean>> = {
  connect: false,
  grpc: false,
  "grpc-web": false,
  mcp: true,
  rest: true,
} satisfies Record<ProtocolName, boolean>;

/** Creates the error for an invalid message. `first` holds the first violation, and `all` finds all of them. */
export function violationError(
  { violationsToProto }: Protovalidate,
  all: Validator,
  type: DescMessage,
  message: Message,
  first: readonly Violation[],
  protocolName: string,
): ConnectError {
  const found = countElements(message, maxElements) > maxElements ? first : all.validate(type, message).violations;
  const violations = [...(found ?? first)];
  const listed = violations.filter(isShort).slice(0, maxViolations);
  const texts = listed.map(({ field, message: text }) => ({
    field: pathToString(field),
    description: toShortLine(text),
  }));
  const [{ field, message: text } = { field: [], message: "" }] = violations;
  const subject = toShortLine(field.length === 0 ? type.typeName : pathToString(field));
  const more = violations.length > 1 ? ` (and ${String(violations.length - 1)} more)` : "";
  const error = problem("ERR_RULES_VIOLATED", `${subject}: ${toShortLine(text)}${more}`);
  const [value, desc] = violationsToProto(listed);
  error.details.push({ desc, value });
  if (sendsBadRequest[protocolName] !== false) {
    error.details.push({ desc: BadRequestSchema, value: create(BadRequestSchema, { fieldViolations: texts }) });
  }
  return error;
}

/** Returns whether a violation is short enough for the details. Paths may contain map keys from the client. */
function isShort({ field, message }: Violation): boolean {
  return pathToString(field).length + message.length <= maxViolationLength;
}

/** Counts the list and map elements in a message. Stops when the count exceeds `max`. */
function countElements(message: unknown, max: number): number {
  let count = 0;
  const pending = [message];
  while (pending.length > 0 && count <= max) {
    const value = pending.pop();
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) continue;
    const parts: readonly unknown[] = Object.values(value);
    // An object with a case is a oneof, not a map.
    if (Array.isArray(value) || !("$typeName" in value || "case" in value)) count += parts.length;
    if (count <= max) pending.push(...parts);
  }
  return count;
}
