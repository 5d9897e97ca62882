/** Returns the function that tells the services of `--service` by their names; NAME* means all that begin so. */
export function serviceFilter(wanted: readonly string[]): (typeName: string) => boolean {
  const names = wanted.map((name) => (name.endsWith("*") ? { prefix: name.slice(0, -1) } : { name }));
  return (typeName) =>
    names.some(({ name, prefix }) => (prefix === undefined ? typeName === name : typeName.startsWith(prefix)));
}
