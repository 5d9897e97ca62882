import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pinned, serverCore, tickUs } from "./cores.ts";
import { replyLimitMs, stop, type RunningServer, type Usage } from "./running-server.ts";

const bytesPerKiB = 1_024;

/**
 * Starts a server that is no program of node's and waits until it listens. Its first line is its port, then it
 * answers each line by one when it has collected its garbage, and ends when its input does. Rejects when it ends
 * first.
 */
export async function startNativeServer(program: string, environment: NodeJS.ProcessEnv): Promise<RunningServer> {
  // taskset becomes the program, so that the process is the server's own.
  const [file, ...args] = pinned(serverCore, [program]);
  const child = spawn(file, args, { env: { ...process.env, ...environment }, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => {
    const limit = setTimeout(() => child.kill("SIGKILL"), replyLimitMs);
    const line = await lines.next();
    clearTimeout(limit);
    if (line.done === true) throw new Error(`${program} ended, or said nothing for ${String(replyLimitMs)} ms`);
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

/** Returns what a process has used, as /proc tells it. */
export function usageOf(pid: number | undefined): Usage {
  const folder = `/proc/${String(pid)}`;
  // proc_pid_stat(5): the name, in parentheses, may hold spaces; behind it utime and stime are the 12th and 13th.
  const stat = readFileSync(`${folder}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(") ") + 2).split(" ");
  const rssKiB = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`${folder}/status`, "latin1"))?.[1];
  return { cpuUs: (Number(fields[11]) + Number(fields[12])) * tickUs, rssBytes: Number(rssKiB) * bytesPerKiB };
}
