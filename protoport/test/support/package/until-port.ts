import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout } from "node:timers/promises";
import type { CommandLine } from "../../../testing/src/process/command-line.ts";

/** Resolves when a program listens on a port on this machine. Rejects with its output if it exits before. */
export async function untilPort(port: number, program: CommandLine): Promise<void> {
  while (program.process.exitCode === null) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await setTimeout(20);
  }
  throw new Error(`the program exited: ${program.stderr()}`);
}
