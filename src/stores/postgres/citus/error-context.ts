/**
 * The contexts of an error of our own statement on Citus: the worker, or a line of our function. If the function of a
 * trigger comes before ours, the trigger raised the error.
 */
export const ownCitusContext: RegExp =
  /^while executing command on \S+$|^(?:SQL statement "(?:(?!PL\/pgSQL function )[^])*"\n)?PL\/pgSQL function \S*plantstore_delete\(/;
