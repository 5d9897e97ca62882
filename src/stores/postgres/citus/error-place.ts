/**
 * The places that Citus names for an error of our own statement: the worker, or a line of our function. If the function
 * of a trigger comes before ours, the error is the trigger's.
 */
export const ownOnCitus: RegExp =
  /^while executing command on \S+$|^(?:SQL statement "(?:(?!PL\/pgSQL function )[^])*"\n)?PL\/pgSQL function \S*plantstore_delete\(/;
