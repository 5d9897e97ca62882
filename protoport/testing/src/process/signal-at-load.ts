/**
 * An environment in which a program sends itself a signal when it loads a module, always at the same line.
 * @param module - the end of the module's path, such as `/command/program.ts`
 */
export function signalAtLoad(signal: NodeJS.Signals, module: string): Readonly<Record<"NODE_OPTIONS", string>> {
  const program = `import { registerHooks } from "node:module";
    registerHooks({
      load(url, context, next) {
        if (url.endsWith("${module}")) process.kill(process.pid, "${signal}");
        return next(url, context);
      },
    });`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` };
}
