import { writeFileSync } from "node:fs";
import { delimiter } from "node:path";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { waitLimitMs } from "../deadline.ts";
import { startProgram } from "./command-line.ts";
import { createTempFolder } from "./temp-folder.ts";

/** A load balancer and its configuration. */
export interface BalancerProgram {
  readonly file: string;
  readonly args: readonly string[];
  /** The configuration file in its folder. */
  readonly config: { readonly name: string; readonly text: string };
  /** The loopback ports on which it listens. */
  readonly ports: readonly number[];
}

/** Returns nginx with these `server` blocks in its section `http`. Everything else has its default. */
export function nginxProgram(servers: string): Omit<BalancerProgram, "ports"> {
  const folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((each) => `${each}_temp_path ${each};`);
  const text = `
daemon off;
# A single process, so that stopping it stops everything.
master_process off;
pid nginx.pid;
events {}
http {
    access_log off;
    ${folders.join(" ")}
    ${servers}
}
`;
  const config = { name: "nginx.conf", text };
  return { file: "nginx", args: ["-p", ".", "-c", config.name, "-e", "stderr"], config };
}

// Debian installs daemons in a folder that only root has on PATH.
const daemonsPath = ["/usr/sbin", process.env["PATH"]].join(delimiter);
/** How often it attempts to connect, in ms. */
const connectEveryMs = 20;

/** Starts a load balancer, and resolves when it listens on all its ports. Dispose it with `await using`. */
export async function startBalancerProcess({ file, args, config, ports }: BalancerProgram): Promise<AsyncDisposable> {
  await using starting = new AsyncDisposableStack();
  const folder = starting.use(createTempFolder());
  writeFileSync(folder.file(config.name), config.text);
  const program = starting.use(startProgram(file, args, folder.path, { PATH: daemonsPath }));
  const untilMs = performance.now() + waitLimitMs;
  for (const port of ports) {
    while (!(await isListening(port))) {
      const hasEnded = program.process.exitCode !== null || program.process.signalCode !== null;
      if (hasEnded || performance.now() > untilMs)
        throw new Error(`${file} exited or did not listen in time:\n${program.stderr()}`);
      await pause(connectEveryMs);
    }
  }
  return starting.move();
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}
