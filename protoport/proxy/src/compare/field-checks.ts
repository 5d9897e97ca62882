import type { DescField } from "@bufbuild/protobuf";
import type { ChangeText } from "./change.ts";
import type { ChangeRule } from "./change-rules.ts";
import type { Usage } from "./usage.ts";
import { cardinalityOf, counterpartOf, hasPresence, typeOf } from "./field-shape.ts";

/** Returns how one property in a field changed, or `undefined` if the property did not change. */
type FieldCheck = (old: DescField, field: DescField, usage: Usage) => ChangeText | undefined;

/** The comparisons between two fields, each with the rule for a difference. */
export const fieldChecks: readonly { readonly rule: ChangeRule; readonly check: FieldCheck }[] = [
  {
    rule: "field-number-changed",
    check: (old, { number, name }, { request }) =>
      old.number === number
        ? undefined
        : {
            change: `${name} has the number ${number} instead of ${old.number}`,
            before: `binary messages of ${request} had ${name} (gRPC, Connect)`,
            now: `${name} is not set`,
          },
  },
  {
    rule: "field-json-name-changed",
    check: (old, field, { direction, request }) => {
      if (old.jsonName === field.jsonName) return undefined;
      const isAccepted = direction === "request" && field.name === old.jsonName;
      return isAccepted
        ? undefined
        : {
            change: `${old.jsonName} is ${field.jsonName} in JSON`,
            before: `${old.jsonName} in ${direction}s to ${request}`,
            now: direction === "request" ? `400: unknown field ${old.jsonName}` : `${field.jsonName} instead`,
          };
    },
  },
  {
    rule: "field-name-changed",
    check: (old, field, { direction, request }) =>
      direction === "response" || [field.name, field.jsonName].includes(old.name) || old.jsonName !== field.jsonName
        ? undefined
        : {
            change: `${old.name} is ${field.name}`,
            before: `${old.name} in JSON or in the query of ${request}`,
            now: `400: unknown field ${old.name}`,
          },
  },
  {
    rule: "field-cardinality-changed",
    check: (old, field, { direction, request }) =>
      cardinalityOf(old) === cardinalityOf(field)
        ? undefined
        : {
            change: `${field.name} is ${cardinalityOf(field)} instead of ${cardinalityOf(old)}`,
            before: `${old.jsonName} in ${direction}s to ${request}`,
            now: direction === "request" ? `400: ${field.jsonName} has another form` : "JSON of another form",
          },
  },
  {
    rule: "field-type-changed",
    check: (old, field, { direction, request }) =>
      typeOf(old) === typeOf(field) || cardinalityOf(old) !== cardinalityOf(field)
        ? undefined
        : {
            change: `${field.name} is ${typeOf(field)} instead of ${typeOf(old)}`,
            before: `${old.jsonName} in ${direction}s to ${request}`,
            now: direction === "request" ? "400, or another value" : "another value in JSON, or another form of it",
          },
  },
  {
    rule: "field-presence-changed",
    check: (old, field, { request }) =>
      !hasPresence(old) || hasPresence(field) || typeOf(old) !== typeOf(field)
        ? undefined
        : {
            change: `${field.name} has no presence`,
            before: `a default value of ${old.jsonName} was sent (${request})`,
            now: "it is absent, like no value",
          },
  },
  {
    rule: "field-oneof-changed",
    check: (old, field, { request }) => {
      if (old.oneof?.name === field.oneof?.name) return undefined;
      const joined = field.oneof?.fields.find(({ number }) => number !== field.number && isSeparate(old, number));
      const change = `${field.name} is ${field.oneof === undefined ? "in no oneof" : `in the oneof ${field.oneof.name}`}`;
      // If `joined` is undefined, old clients never set this field with another field of its new oneof.
      if (joined === undefined)
        return old.oneof === undefined || !isSeparated(old, field)
          ? undefined
          : {
              change,
              before: `${old.oneof.name} had at most one field (${request})`,
              now: `${field.name} can be set too`,
            };
      return {
        severity: "error",
        change,
        before: `${request} with ${old.jsonName} and ${joined.jsonName}`,
        now: "400: only one field of the oneof can be set",
      };
    },
  },
  {
    rule: "field-default-changed",
    check: (old, field, { request }) =>
      hasSameDefault(old, field)
        ? undefined
        : {
            change: `the default of ${field.name} is ${defaultOf(field)}`,
            before: `no value of ${old.name} was ${defaultOf(old)} (${request})`,
            now: `it is ${defaultOf(field)}`,
          },
  },
];

/** Returns whether two fields have the same default. Enum defaults are compared by number. */
function hasSameDefault(old: DescField, field: DescField): boolean {
  if (defaultOf(old) === defaultOf(field)) return true;
  if (old.fieldKind !== "enum" || field.fieldKind !== "enum")
    return old.proto.defaultValue === field.proto.defaultValue;
  const [before, now] = [old, field].map(
    (each) => each.enum.values.find(({ name }) => name === defaultOf(each))?.number,
  );
  return before === now;
}

function defaultOf(field: DescField): string {
  const first = field.fieldKind === "enum" ? field.enum.values[0]?.name : undefined;
  return field.proto.defaultValue || first || "empty";
}

/** Returns whether `field` and the other fields of its old oneof are no longer all in one oneof. */
function isSeparated(old: DescField, field: DescField): boolean {
  if (field.oneof === undefined) return true;
  const others = (old.oneof?.fields ?? []).map((each) => counterpartOf(each, field.parent));
  return others.some((other) => other !== undefined && other.oneof !== field.oneof);
}

/** Returns whether the old message had a field with this number that could be set together with `field`. */
function isSeparate(field: DescField, number: number): boolean {
  const other = field.parent.fields.find((each) => each.number === number);
  return other !== undefined && (other.oneof === undefined || other.oneof !== field.oneof);
}
