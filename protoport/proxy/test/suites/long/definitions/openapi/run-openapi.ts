import { proxyCommand } from "../../../../../src/command/program.ts";

/** Runs `protoport openapi` in this process. */
export async function runOpenApi(
  ...args: readonly string[]
): Promise<{ exitCode: number; printed: string; errors: string }> {
  const output: string[] = [];
  const errors: string[] = [];
  const exitCode = await proxyCommand(["openapi", ...args], {
    stopRequested: () => new Promise<never>(() => undefined),
    onHangup: () => undefined,
    out: (text) => void output.push(text),
    err: (text) => void errors.push(text),
  });
  return { exitCode, printed: output.join("\n"), errors: errors.join("\n") };
}
