import { type CommandLine, startProgram } from "../../../protoport/testing/src/process/command-line.ts";

/** An interactive shell, as an operator has. Dispose it with `await using`. */
export interface Shell extends AsyncDisposable {
  run(commands: string): Promise<void>;
  /** Returns what the commands so far have written to standard error. */
  printed(): string;
}

/** Opens a shell in a folder, with only PATH and the given environment. */
export function openShell(folder: string, environment: Readonly<Record<string, string>>): Shell {
  // The shell leads a process group, so that its servers are killed with it.
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
      // The shell has exited if a command failed, but its processes are still in its group.
      if (pid !== undefined) endGroup(pid);
      await bash.end();
    },
  };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group has no processes any more.
  }
}
