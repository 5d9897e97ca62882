import { cpSync, symlinkSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
// oxfmt-ignore
import { compileCache, createTempFolder, projectFolder, startProgram, type TempFolder, within
} from "@protoport/testing/process";
import { deletePlant } from "../../../support/process/serve-command.ts";
import { attempt } from "../../../../protoport/testing/src/attempt.ts";

// npm forwards signals to the script's shell, and the shell exits without forwarding them. So the script uses exec to
// replace the shell with the server. A terminal sends its signal to both npm and the server.

/** Creates a folder in which `npm start` runs this project's sources with a separate store. */
function createStartFolder(): TempFolder {
  const folder = createTempFolder();
  cpSync(join(projectFolder, "package.json"), folder.file("package.json"));
  for (const name of ["src", "node_modules"]) symlinkSync(join(projectFolder, name), folder.file(name));
  return folder;
}

/** Sends a signal to a process, or to a group by its negative id. Returns whether the process or group exists. */
const send = (id: number, signal: NodeJS.Signals | 0): boolean => attempt(() => process.kill(id, signal)) ?? false;

test.each([
  { name: "SIGTERM to npm", signal: "SIGTERM", toGroup: false },
  { name: "SIGINT to npm", signal: "SIGINT", toGroup: false },
  { name: "Ctrl-C in the terminal", signal: "SIGINT", toGroup: true },
  { name: "SIGTERM to npm and the server", signal: "SIGTERM", toGroup: true },
] as const)("$name stops npm start once the server has drained", async ({ signal, toGroup }) => {
  using folder = createStartFolder();
  const npmSettings = { npm_config_cache: folder.file("npm-cache"), npm_config_update_notifier: "false" };
  const environment = { ...compileCache, PORT: "0", LOG_LEVEL: "info", ...npmSettings };
  await using npm = startProgram("npm", ["start"], folder.path, environment, true);
  const group = -(npm.process.pid ?? Number.NaN);
  // Also kills processes that npm has left running.
  using _ = { [Symbol.dispose]: () => void send(group, "SIGKILL") };
  const [, pid, port] = await npm.find(/"pid":(\d+),.*"port":(\d+)/);
  const [, token] = await npm.find(/Bearer (\S+)/);
  expect(await deletePlant(`http://127.0.0.1:${port}`, 1, token)).toBe(204);
  const exited = once(npm.process, "exit");
  send(toGroup ? group : -group, signal);
  // The signal that npm forwards may arrive while Node.js exits, which has restored the signal's default action.
  const forwarded = toGroup ? [[null, signal]] : [];
  expect([[0, null], ...forwarded]).toContainEqual(await within(exited, "the exit of npm"));
  expect(send(Number(pid), 0)).toBe(false);
  const successor = createServer().listen(Number(port), "127.0.0.1");
  await once(successor, "listening");
  successor.close();
  await npm.end();
  expect(npm.stderr()).toMatch(/"msg":"draining".*"msg":"stopped"/s);
});
