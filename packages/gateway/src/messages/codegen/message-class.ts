import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { makeFunction } from "./make-function.ts";
import { oncePer } from "./once-per.ts";
import { literal, TypeScope } from "./type-scope.ts";

/** A constructor of messages without a field set. */
export type MessageClass = new () => Message;

/** Returns whether every object has a property of this name, so that a message has one without having the field. */
export function isInherited(name: string): boolean {
  return name in Object.prototype;
}

/**
 * Returns a constructor of messages like those of `create()`, for code that was made for the type.
 *
 * The pattern is a message of protobuf-es: its properties in their order and its prototype, which has the defaults of
 * proto2. A constructor, because V8 then knows how many properties such objects get, and keeps all of them in the
 * object.
 */
export const messageClass: (desc: DescMessage) => MessageClass = oncePer((desc) => {
  const pattern = create(desc);
  return Object.keys(pattern).length > keptPropertiesMax ? classOf(desc) : makeClass(pattern);
});

/** The most properties that are set by a constructor. V8 keeps 380 at most as it does, and for more `create()` is quicker. */
const keptPropertiesMax = 400;

function classOf(desc: DescMessage): MessageClass {
  return makeFunction("function () { return create(desc); }", { create, desc });
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
