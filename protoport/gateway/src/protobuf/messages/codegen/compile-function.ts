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
export type Scope = Readonly<Record<string, unknown>>;

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
