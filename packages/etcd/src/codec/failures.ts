/** etcd's errors: clients know them by the exact text, so both columns are its own. */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCode } from '@megaplane/wire/grpc';

export interface EtcdFailure {
  readonly code: GrpcCode;
  readonly text: string;
}

function failure(code: GrpcCode, text: string): EtcdFailure {
  return { code, text: `etcdserver: ${text}` };
}

/** An error of a library inside etcd, which has no code of its own. */
export function unknown(text: string): EtcdFailure {
  return { code: GRPC_CODES.unknown, text };
}

/** What Go's protobuf says, since etcd 3.7, of bytes that are none. */
const NO_MESSAGE = 'proto: cannot parse invalid wire-format data';
const { invalidArgument, outOfRange, notFound, failedPrecondition } = GRPC_CODES;

type EtcdFailureName =
  | 'emptyKey'
  | 'keyNotFound'
  | 'valueProvided'
  | 'leaseProvided'
  | 'tooManyOps'
  | 'duplicateKey'
  | 'invalidSort'
  | 'tooLarge'
  | 'compacted'
  | 'futureRevision'
  | 'leaseTtlTooLarge'
  | 'noSpace'
  | 'tooManyRequests'
  | 'clientVersionInvalid'
  | 'leaseNotFound'
  | 'memberNotFound'
  | 'leaseExists'
  | 'authNotEnabled'
  | 'stopped'
  | 'notSupported'
  | 'corrupt'
  | 'unknownMethod'
  | 'badTransferee'
  | 'noLeader'
  | 'notLeader'
  | 'timeout'
  | 'downgradeFormat'
  | 'downgradeTarget'
  | 'peerUrlsExist'
  | 'memberUrls'
  | 'notEnoughMembers'
  | 'notLearner'
  | 'malformed'
  | 'malformedStream'
  | 'notText';

export const ETCD: Readonly<Record<EtcdFailureName, EtcdFailure>> = {
  emptyKey: failure(invalidArgument, 'key is not provided'),
  keyNotFound: failure(invalidArgument, 'key not found'),
  valueProvided: failure(invalidArgument, 'value is provided'),
  leaseProvided: failure(invalidArgument, 'lease is provided'),
  tooManyOps: failure(invalidArgument, 'too many operations in txn request'),
  duplicateKey: failure(invalidArgument, 'duplicate key given in txn request'),
  invalidSort: failure(invalidArgument, 'invalid sort option'),
  tooLarge: failure(invalidArgument, 'request is too large'),
  compacted: failure(outOfRange, 'mvcc: required revision has been compacted'),
  futureRevision: failure(outOfRange, 'mvcc: required revision is a future revision'),
  leaseTtlTooLarge: failure(outOfRange, 'too large lease TTL'),
  noSpace: failure(GRPC_CODES.resourceExhausted, 'mvcc: database space exceeded'),
  tooManyRequests: failure(GRPC_CODES.resourceExhausted, 'too many requests'),
  clientVersionInvalid: failure(invalidArgument, 'invalid client api version'),
  leaseNotFound: failure(notFound, 'requested lease not found'),
  memberNotFound: failure(notFound, 'member not found'),
  leaseExists: failure(failedPrecondition, 'lease already exists'),
  authNotEnabled: failure(failedPrecondition, 'authentication is not enabled'),
  stopped: failure(GRPC_CODES.unavailable, 'server stopped'),
  notSupported: failure(
    GRPC_CODES.unimplemented,
    'this server has one member and does not offer this call',
  ),
  corrupt: failure(GRPC_CODES.dataLoss, 'corrupt cluster'),
  unknownMethod: failure(GRPC_CODES.unknown, 'unknown method'),
  noLeader: failure(GRPC_CODES.unavailable, 'no leader'),
  notLeader: failure(failedPrecondition, 'not leader'),
  timeout: failure(GRPC_CODES.unavailable, 'request timed out'),
  badTransferee: failure(failedPrecondition, 'bad leader transferee'),
  downgradeFormat: failure(invalidArgument, 'wrong downgrade target version format'),
  downgradeTarget: failure(invalidArgument, 'invalid downgrade target version'),
  peerUrlsExist: failure(failedPrecondition, 'Peer URLs already exists'),
  memberUrls: failure(invalidArgument, 'given member URLs are invalid'),
  // etcd's table has the client's error in place of the server's, so it comes without its code.
  notEnoughMembers: failure(
    GRPC_CODES.unknown,
    're-configuration failed due to not enough started members',
  ),
  notLearner: failure(failedPrecondition, 'can only promote a learner member'),
  malformed: {
    code: GRPC_CODES.internal,
    text: `grpc: error unmarshalling request: ${NO_MESSAGE}`,
  },
  // grpc-go reads the messages of streams elsewhere, and says it otherwise.
  malformedStream: {
    code: GRPC_CODES.internal,
    text: `grpc: failed to unmarshal the received message: ${NO_MESSAGE}`,
  },
  notText: {
    code: GRPC_CODES.internal,
    text: 'grpc: error unmarshalling request: string field contains invalid UTF-8',
  },
};

/** The failures of the store by their numbers. */
const BY_NUMBER: Readonly<Record<number, EtcdFailure>> = {
  [-1]: ETCD.compacted,
  [-2]: ETCD.futureRevision,
  [-4]: ETCD.leaseNotFound,
  [-5]: ETCD.leaseExists,
  [-6]: ETCD.leaseTtlTooLarge,
  [-7]: ETCD.noSpace,
  [-8]: ETCD.tooManyRequests,
  [-9]: ETCD.stopped,
};

export function storeFailure(number: number): EtcdFailure {
  return BY_NUMBER[number] ?? ETCD.stopped;
}
