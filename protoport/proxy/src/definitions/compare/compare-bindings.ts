import type { DescMessage } from "@bufbuild/protobuf";
import { resolveProtoPath, type RestBinding, selectorOf } from "@protoport/gateway/rest";
import type { ChangeList } from "./change.ts";

/** A route in the old definition, and the route in the new definition that matches its requests. */
export interface RoutePair {
  readonly before: RestBinding;
  readonly now: RestBinding;
}

/** Compares two routes' paths, bodies and response status. */
export function compareBindings(pair: RoutePair, changes: ChangeList): void {
  comparePaths(pair, changes);
  compareBodies(pair, changes);
  compareStatus(pair, changes);
}

/** Returns a route's request, such as `GET /v1/{id}`. */
export function requestOf({ pattern }: RestBinding): string {
  return `${pattern.httpMethod} ${pattern.pathTemplate}`;
}

/** Returns the subject for a route's changes, which contains the RPC and the request. */
export function bindingSubjectOf(binding: RestBinding): string {
  return `${selectorOf(binding.method)} ${requestOf(binding)}`;
}

function comparePaths({ before, now }: RoutePair, changes: ChangeList): void {
  const [oldFields, fields] = [fieldsOfPath(before), fieldsOfPath(now)];
  const element = now.method;
  for (const [segments, old] of oldFields) {
    const field = fields.get(segments);
    if (field?.numbers === old.numbers) continue;
    changes.add("path-variable-changed", bindingSubjectOf(before), element, {
      change: `the path is ${now.pattern.pathTemplate}`,
      before: `${requestOf(before)} set ${old.name} from the path`,
      now: field === undefined ? `${old.name} is not set` : `${field.name} is set`,
    });
  }
  const oldNumbers = new Set([...oldFields.values()].map(({ numbers }) => numbers));
  for (const { numbers, name } of fields.values()) {
    if (oldNumbers.has(numbers) || !hasField(before.method.input, numbers)) continue;
    const part = before.pattern.body === "*" ? "body" : "query";
    changes.add("field-moved", `${bindingSubjectOf(before)} ${name}`, element, {
      change: `${name} is in the path, ${now.pattern.pathTemplate}`,
      before: `${requestOf(before)} had ${name} in the ${part}`,
      now: `400: ${name} must be in the path`,
    });
  }
}

function compareBodies({ before, now }: RoutePair, changes: ChangeList): void {
  const { body, responseBody } = now.pattern;
  if (bodyNumber(before.method.input, before.pattern.body) !== bodyNumber(now.method.input, body))
    changes.add("body-changed", bindingSubjectOf(before), now.method, {
      change: `the body of requests is ${nameBody(body)}`,
      before: `${requestOf(before)}, whose body is ${nameBody(before.pattern.body)}`,
      now: "400, or other fields are set",
    });
  if (bodyNumber(before.method.output, before.pattern.responseBody) !== bodyNumber(now.method.output, responseBody))
    changes.add("response-body-changed", bindingSubjectOf(before), now.method, {
      change: `the body of responses is ${nameBody(responseBody)}`,
      before: `a response to ${requestOf(before)}, whose body is ${nameBody(before.pattern.responseBody)}`,
      now: "JSON of another form",
    });
}

function compareStatus({ before, now }: RoutePair, changes: ChangeList): void {
  const [old, status] = [preparedStatusOf(before), preparedStatusOf(now)];
  if (old === status) return;
  changes.add("response-status-changed", bindingSubjectOf(before), now.method, {
    change: `the response is a ${now.method.output.typeName}`,
    before: `${requestOf(before)} responded with ${old}`,
    now: `${status}`,
  });
}

function preparedStatusOf({ preparedResponse }: RestBinding): number {
  return preparedResponse?.httpStatus ?? 200;
}

function nameBody(body: string): string {
  if (body === "") return "not set";
  return body === "*" ? "the message" : `the field ${body}`;
}

/** Returns the body field's number, because renaming the field breaks no client. */
function bodyNumber(type: DescMessage, body: string): number | string {
  return type.fields.find(({ name }) => name === body)?.number ?? body;
}

/** Returns a path template's fields by segment range, each with its name and its path of field numbers. */
function fieldsOfPath({ method, template }: RestBinding): ReadonlyMap<string, { name: string; numbers: string }> {
  return new Map(
    template.variables.map(({ fieldPath, start, end }) => {
      const numbers = (resolveProtoPath(method.input, fieldPath) ?? []).map(({ number }) => number).join(".");
      return [`${start}-${end}`, { name: fieldPath.join("."), numbers }];
    }),
  );
}

function hasField(message: DescMessage, numbers: string): boolean {
  let type: DescMessage | undefined = message;
  return numbers.split(".").every((number) => {
    const field = type?.fields.find((each) => each.number === Number(number));
    type = field?.message;
    return field !== undefined;
  });
}
