import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { compileFunction } from "./compile-function.ts";
import { memoize } from "./memoize.ts";
import { literal, TypeScope } from "./type-scope.ts";

/** Constructs an empty message. */
export type MessageClass = new () => Message;

/** Returns whether every object inherits a property with this name, even if the field is not set. */
export function isInherited(name: string): boolean {
  return name in Object.prototype;
}

/**
 * Returns a constructor that generated code calls instead of `create()`. The messages have the same properties in the
 * same order, and the same prototype, which has the proto2 defaults. With a constructor, V8 knows how many properties
 * an object will have, and stores all properties in the object itself.
 */
export const messageClass: (desc: DescMessage) => MessageClass = memoize((desc) => {
  const pattern = create(desc);
  return Object.keys(pattern).length > keptPropertiesMax ? classOf(desc) : makeClass(pattern);
});

/** Maximum properties of a class. For more, `create()` is faster, because V8 stores at most 380 in the object. */
const keptPropertiesMax = 400;

function classOf(desc: DescMessage): MessageClass {
  return compileFunction("function () { return create(desc); }", { create, desc });
}

function makeClass(pattern: Message): MessageClass {
  const scope = new TypeScope({});
  const lines = Object.entries(pattern).map(
    ([name, value]) => `this[${literal(name)}] = ${initialValue(value, scope)};`,
  );
  const constructor = compileFunction<MessageClass>(`function () {\n${lines.join("\n")}\n}`, scope.values);
  // Instances get the prototype of `create()` results, and therefore the same `constructor`.
  Reflect.set(constructor, "prototype", Object.getPrototypeOf(pattern));
  return constructor;
}

function initialValue(value: unknown, scope: TypeScope): string {
  if (Array.isArray(value)) return "[]";
  // All messages share the same empty byte array, as in protobuf-es.
  if (typeof value !== "object" || value instanceof Uint8Array) return scope.name(value);
  return value !== null && "case" in value ? "{ case: undefined }" : "{}";
}
