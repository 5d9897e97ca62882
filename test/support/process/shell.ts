import { type CommandLine, startProgram } from "../../../packages/testing/src/process/command-line.ts";

/** A shell that stays open, as an operator has one on a machine. Dispose of it with `await using`. */
export interface Shell extends AsyncDisposable {
  /** Runs commands; their processes stay when they were started in the background. Rejects when a command fails. */
  run(commands: string): Promise<void>;
  /** What they have printed on standard error. */
  printed(): string;
}

/** Opens a shell in a folder, with only PATH and the given environment. */
export function openShell(folder: string, environment: Readonly<Record<string, string>>): Shell {
  // The leader of a process group, so that its servers end with it.
  const bash: CommandLine = startProgram("bash", ["-e", "-s"], folder, environment, true);
  let blocks = 0;
  return {
    run: async (commands) => {
      const end = `end of block ${++blocks}`;
      bash.process.stdin.write(`${commands}\necho "${end}"\n`);
      await bash.find(new RegExp(`^${end}$`, "m"));
    },
    printed: bash.stderr,
    [Symbol.asyncDispose]: async () => {
      const { pid } = bash.process;
      // It has ended already when a command has failed; what it has started is in its group all the same.
      if (pid !== undefined) endGroup(pid);
      await bash.end();
    },
  };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Nothing is left of it.
  }
}
