/** How the process ends; sysexits.h names 78 EX_CONFIG, 2 is what shells use for wrong usage. */
export const exitCode = {
  ok: 0,
  /** Something failed that was asked for correctly. */
  failure: 1,
  /** The command line makes no sense. */
  usage: 2,
  /** A setting is missing, wrong or in contradiction to another. */
  configuration: 78,
} as const;
