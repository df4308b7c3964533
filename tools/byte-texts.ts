/**
 * Where a byte is taken for a character, and why that is right there. Everywhere else text is
 * UTF-8: what cuts characters to their low bytes takes one name for another.
 */

const WIRE = 'fields and lines of HTTP are bytes; who reads them decodes them';
const ETCD_KEYS = 'keys of etcd are any bytes: to text and back they stay the same';
const PEM = 'PEM and DER: what is beyond ASCII there is refused by the parser behind it';
const ASCII = 'the bytes were found to be ASCII, or are written by this file alone';
const SYSTEM = 'files of the kernel, in ASCII';
const GO_BYTES = 'Go tells a wrong byte as the character of that number';
const PROTOCOL = 'constants of a protocol, in ASCII';
const ROUND_TRIP = 'bytes are kept as text and written back as the same bytes';

/** Files by path, each with its reason. */
export const BYTE_TEXTS: Readonly<Record<string, string>> = {
  'packages/base/src/bytes/bytes.ts': ASCII,
  'packages/wire/src/hpack/hpack-encoder.ts': WIRE,
  'packages/wire/src/latin1.ts': WIRE,
  'packages/wire/src/http1/http1-output.ts': WIRE,
  'packages/wire/src/http1/http1-head.ts': WIRE,
  'packages/wire/src/http2/http2-control.ts': WIRE,
  'packages/wire/src/grpc/grpc-routes.ts': WIRE,
  'packages/wire/src/grpc/grpc-head.ts': WIRE,
  'packages/wire/src/server/served-protocols.ts': WIRE,
  'packages/wire/src/http2/frames.ts': PROTOCOL,
  'packages/store/src/wal/frame.ts': PROTOCOL,
  'packages/store/src/wal/lock.ts': SYSTEM,
  'packages/etcd/src/auth/tokens.ts': WIRE,
  'packages/etcd/src/auth/service/auth-guard.ts': ETCD_KEYS,
  'packages/etcd/src/auth/service/auth-service.ts': ETCD_KEYS,
  'packages/etcd/src/backend/auth-buckets.ts': ETCD_KEYS,
  'packages/etcd/src/kv/txn.ts': ETCD_KEYS,
  'packages/etcd/src/watch/watch.ts': ETCD_KEYS,
  'packages/etcd/src/bbolt/reader.ts': ETCD_KEYS,
  'packages/etcd/src/bbolt/image.ts': ETCD_KEYS,
  'packages/etcd/src/backend/snapshot-file.ts': ASCII,
  'packages/etcd/src/server/revoked.ts': PEM,
  'packages/etcd/src/call/served-methods.ts': WIRE,
  'packages/etcd/src/http/process-stats.ts': SYSTEM,
  'packages/machinery/src/validation/validation-certificates.ts': PEM,
  'packages/machinery/src/meta/certificate-request.ts': PEM,
  'packages/machinery/src/warnings/kind-warnings.ts': PEM,
  'packages/machinery/src/apiextensions/definition-webhook.ts': PEM,
  'packages/machinery/src/codec/stored-value.ts':
    'the first bytes of what is no text, told as they are',
  'packages/machinery/src/serializer/transcode.ts': ASCII,
  'packages/machinery/src/printers/printing-digest.ts': ASCII,
  'packages/machinery/src/json/scan.ts': ASCII,
  'packages/client/src/clientcmd/kubeconfig.ts': PEM,
  'packages/controllers/src/certificates/controller.ts': PEM,
  'packages/controllers/src/garbagecollector/garbage-graph.ts':
    'what is no UUID is the uid of nothing',
  'packages/scheduler/src/extenders/extender-answer.ts': GO_BYTES,
  'packages/nodes/src/lease/lease-bytes.ts': ASCII,
  'packages/nodes/src/lease/renew-times.ts': ASCII,
  'packages/nodes/src/pod/pod-ip-fields.ts': 'addresses; what is beyond ASCII is none',
  'packages/nodes/src/gotemplate/sprig-strings.ts': 'sprig and Go go through a text by bytes',
  'packages/nodes/src/gotemplate/sprig-words.ts': 'sprig and Go go through a text by bytes',
  'packages/nodes/src/server/port-forward-sockets.ts': 'base64; what is none is refused behind it',
  'packages/nodes/src/server/spdy-dictionary.ts': PROTOCOL,
  'packages/nodes/src/server/spdy-frames.ts': WIRE,
  'packages/nodes/src/server/log-lines.ts': PROTOCOL,
  'packages/nodes/src/server/exec.ts': 'numbers that this program writes to itself',
  'packages/nodes/src/server/remote-streams.ts': 'sizes of windows, as JSON of numbers',
  'packages/cli/src/service/parent.ts': SYSTEM,
  'packages/fleet/src/rollup/rolling.ts': ROUND_TRIP,
  'packages/fleet/src/pods/pods-controller.ts': 'uid, phase and namespace, which are ASCII',
  'packages/apiserver/src/request/header-text.ts':
    'the one place that decodes what the wire hands over',
  'packages/apiserver/src/request/request-info.ts': 'the one place that decodes paths',
  'packages/apiserver/src/request/call.ts': WIRE,
  'packages/apiserver/src/request/options/continue-token.ts': GO_BYTES,
  'packages/apiserver/src/kubelet/upgrade.ts': WIRE,
  'packages/apiserver/src/sink/sink.ts': ASCII,
  'packages/apiserver/src/fastpath/template.ts': ROUND_TRIP,
  'packages/apiserver/src/fastpath/shape.ts': ROUND_TRIP,
  'packages/apiserver/src/fastpath/binding-body.ts': ASCII,
  'packages/apiserver/src/managedfields/shown-fields.ts': ASCII,
  'packages/apiserver/src/storage/etcd3/feed.ts': ETCD_KEYS,
  'packages/apiserver/src/authentication/account-tokens.ts':
    'tokens, in ASCII; what is not is none',
  'packages/apiserver/src/storage/encryption/value-sealer.ts':
    'names of ciphers and keys, in ASCII',
  'packages/apiserver/src/metrics/process-metrics.ts': SYSTEM,
  'packages/apiserver/src/controlplane/advertised-address.ts': SYSTEM,
  'packages/apiserver/src/admission/plugin/node-restriction.ts': PEM,
  'packages/apiserver/src/admission/plugin/certificates.ts': PEM,
};
