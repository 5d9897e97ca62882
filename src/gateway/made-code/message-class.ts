import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { makeFunction } from "./make-function.ts";
import { literal, TypeScope } from "./type-scope.ts";

/** A constructor of messages without a field set. */
export type MessageClass = new () => Message;

const classes = new WeakMap<DescMessage, MessageClass>();

/**
 * Returns a constructor of messages like those of `create()`, for code that was made for the type.
 *
 * The pattern is a message of protobuf-es: its properties in their order and its prototype, which has the defaults of
 * proto2. A constructor, because V8 then knows how many properties such objects get, and keeps all of them in the
 * object.
 */
export function messageClass(desc: DescMessage): MessageClass {
  let made = classes.get(desc);
  if (made === undefined) {
    made = makeClass(create(desc));
    classes.set(desc, made);
  }
  return made;
}

function makeClass(pattern: Message): MessageClass {
  const scope = new TypeScope({});
  const lines = Object.entries(pattern).map(
    ([name, value]) => `this[${literal(name)}] = ${initialValue(value, scope)};`,
  );
  const made = makeFunction<MessageClass>(`function () {\n${lines.join("\n")}\n}`, scope.values);
  // Instances are what `create()` returns: their constructor is Object, by the chain of their prototypes.
  Reflect.set(made, "prototype", Object.getPrototypeOf(pattern));
  return made;
}

function initialValue(value: unknown, scope: TypeScope): string {
  if (Array.isArray(value)) return "[]";
  // Like protobuf-es, which shares empty bytes among messages.
  if (typeof value !== "object" || value instanceof Uint8Array) return scope.name(value);
  return value !== null && "case" in value ? "{ case: undefined }" : "{}";
}
