/** The plantstore command for tests, in this process or in others. */
export * from "./child-server.ts";
export * from "./command-line.ts";
export * from "./mounts.ts";
export * from "./run-command.ts";
export * from "./serve-command.ts";
export * from "./shell.ts";
