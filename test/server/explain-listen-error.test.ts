import { expect, test } from "vitest";
import { explainListenError } from "../../src/server/start-server.ts";

const at = { host: "::1", port: 8080 };

test.each(
  // oxfmt-ignore
  [
    { code: "EACCES", syscall: "listen",
      want: "cannot listen on [::1]:8080: permission denied for this user; choose a higher PORT, such as 8080" },
    { code: "EAFNOSUPPORT", syscall: "listen", want: "cannot listen on HOST: message of the system" },
    { code: "EADDRINUSE", syscall: "bind",
      want: "cannot listen on [::1]:8080: the port is in use; choose another port, such as PORT=8081" },
    { code: "EAI_AGAIN", syscall: "getaddrinfo", want: 'HOST must be an address of this machine, got "::1"' },
  ],
)("explainListenError names the setting for $code from $syscall()", ({ want, ...fields }) => {
  const cause = Object.assign(new Error("message of the system"), fields);
  expect(explainListenError(cause, at)).toEqual(new Error(want, { cause }));
});

test.each([
  { name: "an error of chmod()", reason: Object.assign(new Error("chmod"), { code: "EPERM", syscall: "chmod" }) },
  { name: "an error of the store", reason: Object.assign(new Error("cannot open"), { code: "ERR_STORE_OPEN" }) },
  { name: "an error without a code", reason: new Error("the port was released") },
])("explainListenError returns $name unchanged", ({ reason }) => {
  expect(explainListenError(reason, at)).toBe(reason);
});
