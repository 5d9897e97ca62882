/** An environment in which a program signals itself when it loads a module, given by the end of its path. */
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
