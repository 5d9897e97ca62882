import { afterAll, vi } from "vitest";

/**
 * Returns a list to which the source of each generated function is added while the file's tests run. Tests may empty
 * the list.
 */
export function recordGeneratedFunctions(): string[] {
  const sources: string[] = [];
  vi.stubGlobal(
    "Function",
    new Proxy(Function, {
      construct(target, args: string[]) {
        if (args.at(-1)?.includes("function") === true) sources.push(String(args.at(-1)));
        return Reflect.construct(target, args);
      },
    }),
  );
  afterAll(() => vi.unstubAllGlobals());
  return sources;
}
