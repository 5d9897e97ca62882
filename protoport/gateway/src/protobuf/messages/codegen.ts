import { create, type DescMessage, type Message } from "@bufbuild/protobuf";

/**
 * This module is the only place in the gateway that compiles generated code at run time.
 *
 * Reason: V8 cannot optimize a function that serves every type, because it looks up properties by variable names,
 * at megamorphic sites, and calls a different function for each field. A function generated for one type has the
 * property names in its source, and each site sees one object shape. Compared with `fromBinary`, one closure per field
 * takes 0.7 of the time to read a list with a hundred books, and generated code 0.37 (38 KB, measured alternately in
 * one process). Compared with `fromJsonString`, closures take 0.47 of the time, and generated code 0.32. Compared with
 * `toJsonString`, closures take 0.6 of the time, and generated code 0.25.
 *
 * Safety: the source is generated from descriptors, which the program that runs the gateway has compiled in or loaded.
 * Client input, such as a message or a header, never becomes part of the source. From the descriptors, the source
 * contains only names and numbers, each as a JSON literal, which is also a JavaScript literal (ECMA-262, "JSON
 * superset"). All other values in a generated function are passed under names that the gateway defines.
 *
 * Availability: a Worker, a page with a Content-Security-Policy, and node with
 * `--disallow-code-generation-from-strings` forbid code generation. Whether the runtime allows code generation is
 * checked once, at the first message. Without code generation, protobuf-es or, for JSON, the exact reader and the
 * `json/` closures return the same results. A program that does not trust its descriptors sets node's flag, or the
 * option `codegen: false`.
 *
 * Cost: compiling a type's reader or writer takes about 0.2 ms, when the first message is read or written.
 */

/** The values that a function's source refers to, by name. */
type Scope = Readonly<Record<string, unknown>>;

/** Options for functions that read or write messages. */
export interface CodegenOptions {
  /** Whether code may be generated. By default, code is generated if the runtime allows it. */
  readonly codegen?: boolean;
}

/** Whether the runtime allows code generation. `undefined` before the first check. The check's result never changes. */
let isAllowed: boolean | undefined;

/** Returns whether code may be generated with these options. */
export function canCompile(options: CodegenOptions | undefined): boolean {
  return options?.codegen !== false && (isAllowed ??= tryToCompile());
}

/** Compiles a function's source. @throws EvalError if the runtime does not allow code generation */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is determined by the source
export function compileFunction<T>(text: string, scope: Scope): T {
  // oxlint-disable-next-line typescript/no-implied-eval -- see above
  const factory = new Function(...Object.keys(scope), `"use strict";\nreturn ${text};`);
  return factory(...Object.values(scope));
}

function tryToCompile(): boolean {
  try {
    return compileFunction<() => boolean>("() => true", {})();
  } catch {
    return false;
  }
}

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
  return Object.keys(pattern).length > maxKeptProperties ? classOf(desc) : makeClass(pattern);
});

/** Maximum properties of a class. For more, `create()` is faster, because V8 stores at most 380 in the object. */
const maxKeptProperties = 400;

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

/** Returns a descriptor's name or number as a literal for generated code. */
export const literal = (value: string | number): string => JSON.stringify(value);

/** The scope of one generated function, with the values common to all types and the type's own values. */
export class TypeScope {
  readonly #values: Record<string, unknown>;
  #count = 0;

  constructor(common: Scope) {
    this.#values = { ...common };
  }

  /** Adds a value, and returns its name in the generated source. */
  name(value: unknown): string {
    this.#count += 1;
    const name = `own${String(this.#count)}`;
    this.#values[name] = value;
    return name;
  }

  get values(): Scope {
    return this.#values;
  }
}

/**
 * Maximum cases that are compared one after another. V8 does not optimize a function with many more cases. Unoptimized,
 * a message with a thousand fields takes 10 ms in JSON, or 2.5 ms in binary.
 */
const maxComparedCases = 100;

/**
 * Generates a switch over an expression. A switch with many cases looks up the case's index in a map, so that V8 can
 * compile a jump table. `name` adds a value to the generated code's scope, and returns the value's name.
 */
export function switchSource(
  expression: string,
  cases: ReadonlyMap<string | number, string>,
  otherwise: string,
  name: (value: unknown) => string,
): string {
  // equivalent mutant: one case more or less makes no measurable difference.
  const isLong = cases.size > maxComparedCases;
  const indexes = new Map([...cases.keys()].map((value, index) => [value, index]));
  const labelled = [...cases].map(
    ([value, statements], index) => `case ${literal(isLong ? index : value)}:\n${statements}\n`,
  );
  return `switch (${isLong ? `${name(indexes)}.get(${expression})` : expression}) {
${labelled.join("")}default:
${otherwise}
}`;
}

/** Thrown by the fast path if the exact implementation must determine the result. A symbol needs no stack trace. */
export const bailOut: unknown = Symbol("bail out");

/** Throws {@link bailOut}. */
export function throwBailOut(): never {
  throw bailOut;
}

/** Returns a function that computes a value once per key, such as a descriptor. The value lives as long as the key. */
/* @__NO_SIDE_EFFECTS__ */
export function memoize<Key extends object, Value extends object | boolean>(
  compute: (key: Key) => Value,
): (key: Key) => Value {
  const values = new WeakMap<Key, Value>();
  return (key) => {
    const cached = values.get(key);
    if (cached !== undefined) return cached;
    const value = compute(key);
    values.set(key, value);
    return value;
  };
}
