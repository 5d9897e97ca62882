/**
 * Matches the context of an error of our own statement on Citus: a worker, or a line of our function. If a trigger's
 * function comes before ours in the context, the trigger raised the error.
 */
export const ownCitusContext: RegExp =
  /^while executing command on \S+$|^(?:SQL statement "(?:(?!PL\/pgSQL function )[^])*"\n)?PL\/pgSQL function \S*plantstore_delete\(/;
