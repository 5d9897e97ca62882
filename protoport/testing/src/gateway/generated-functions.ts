import { afterAll, vi } from "vitest";

/** Returns a list of the sources of generated functions, from now until the file's tests end. Tests may empty it. */
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
