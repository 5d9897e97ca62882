import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pinned, serverCore, tickUs } from "./cores.ts";
import { replyLimitMs, stop, type RunningServer, type Usage } from "./running-server.ts";

const bytesPerKiB = 1_024;

/**
 * Starts a server that does not run on node, and waits until it listens. The program first prints its port. For each
 * input line, the program collects garbage and writes a line. The program exits when its input ends. Rejects if the
 * program exits before it listens.
 */
export async function startNativeServer(program: string, environment: NodeJS.ProcessEnv): Promise<RunningServer> {
  // taskset executes the program in its own process, so the child is the server.
  const [file, ...args] = pinned(serverCore, [program]);
  const child = spawn(file, args, { env: { ...process.env, ...environment }, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => {
    const limit = setTimeout(() => child.kill("SIGKILL"), replyLimitMs);
    const line = await lines.next();
    clearTimeout(limit);
    if (line.done === true) throw new Error(`${program} exited or did not respond within ${String(replyLimitMs)} ms`);
    return line.value;
  };
  const port = Number(await nextLine());
  const usage = (): Usage => usageOf(child.pid);
  return {
    port,
    usage: () => Promise.resolve(usage()),
    settle: async () => {
      child.stdin.write("settle\n");
      await nextLine();
      return usage();
    },
    stop: () => stop(child),
  };
}

/** Returns a process's CPU time and memory from /proc. */
export function usageOf(pid: number | undefined): Usage {
  const folder = `/proc/${String(pid)}`;
  // The name in parentheses may contain spaces (proc_pid_stat(5)). Utime and stime are the 12th and 13th field after
  // the name.
  const stat = readFileSync(`${folder}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(") ") + 2).split(" ");
  const rssKiB = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`${folder}/status`, "latin1"))?.[1];
  return { cpuUs: (Number(fields[11]) + Number(fields[12])) * tickUs, rssBytes: Number(rssKiB) * bytesPerKiB };
}
