/**
 * The messages of etcd's API as the JSON gateway sees them: field numbers, names and kinds, in the
 * order of their declaration, which is the order of the JSON.
 */
import { ownMember } from '@megaplane/base/members';

export type Kind = 'int64' | 'uint64' | 'uint32' | 'bool' | 'bytes' | 'string';

export interface Field {
  readonly number: number;
  readonly name: string;
  /** The same in lowerCamelCase, which requests may use. */
  readonly camel: string;
  readonly kind: Kind | { readonly enum: string } | { readonly message: string };
  readonly isRepeated: boolean;
}

export interface Message {
  readonly fields: readonly Field[];
  readonly byName: ReadonlyMap<string, Field>;
  readonly byNumber: ReadonlyMap<number, Field>;
}

/** Enum values by name, under the name that etcd's errors print. */
export const ENUMS: Readonly<Record<string, readonly string[]>> = {
  'etcdserverpb.RangeRequest_SortOrder': ['NONE', 'ASCEND', 'DESCEND'],
  'etcdserverpb.RangeRequest_SortTarget': ['KEY', 'VERSION', 'CREATE', 'MOD', 'VALUE'],
  'etcdserverpb.Compare_CompareResult': ['EQUAL', 'GREATER', 'LESS', 'NOT_EQUAL'],
  'etcdserverpb.Compare_CompareTarget': ['VERSION', 'CREATE', 'MOD', 'VALUE', 'LEASE'],
  'etcdserverpb.WatchCreateRequest_FilterType': ['NOPUT', 'NODELETE'],
  'etcdserverpb.AlarmRequest_AlarmAction': ['GET', 'ACTIVATE', 'DEACTIVATE'],
  'etcdserverpb.AlarmType': ['NONE', 'NOSPACE', 'CORRUPT'],
  'etcdserverpb.DowngradeRequest_DowngradeAction': ['VALIDATE', 'ENABLE', 'CANCEL'],
  'mvccpb.Event_EventType': ['PUT', 'DELETE'],
  'authpb.Permission_Type': ['READ', 'WRITE', 'READWRITE'],
};

const SHORT_ENUMS: Readonly<Record<string, string>> = {
  SortOrder: 'etcdserverpb.RangeRequest_SortOrder',
  SortTarget: 'etcdserverpb.RangeRequest_SortTarget',
  CompareResult: 'etcdserverpb.Compare_CompareResult',
  CompareTarget: 'etcdserverpb.Compare_CompareTarget',
  FilterType: 'etcdserverpb.WatchCreateRequest_FilterType',
  AlarmAction: 'etcdserverpb.AlarmRequest_AlarmAction',
  AlarmType: 'etcdserverpb.AlarmType',
  DowngradeAction: 'etcdserverpb.DowngradeRequest_DowngradeAction',
  EventType: 'mvccpb.Event_EventType',
  PermissionType: 'authpb.Permission_Type',
};
const KINDS = new Set(['int64', 'uint64', 'uint32', 'bool', 'bytes', 'string']);
const H = 'ResponseHeader header';

/** `kind name` or `kind name=number`; numbers count on from the last one; `*` is repeated. */
const SOURCE: Readonly<Record<string, string>> = {
  Empty: '',
  HeaderOnly: H,
  ResponseHeader: 'uint64 cluster_id, uint64 member_id, int64 revision, uint64 raft_term',
  KeyValue:
    'bytes key, int64 create_revision, int64 mod_revision, int64 version, bytes value, int64 lease',
  Event: 'EventType type, KeyValue kv, KeyValue prev_kv',
  RangeRequest:
    'bytes key, bytes range_end, int64 limit, int64 revision, SortOrder sort_order, ' +
    'SortTarget sort_target, bool serializable, bool keys_only, bool count_only, ' +
    'int64 min_mod_revision, int64 max_mod_revision, int64 min_create_revision, ' +
    'int64 max_create_revision',
  RangeResponse: `${H}, *KeyValue kvs, bool more, int64 count`,
  PutRequest:
    'bytes key, bytes value, int64 lease, bool prev_kv, bool ignore_value, bool ignore_lease',
  PutResponse: `${H}, KeyValue prev_kv`,
  DeleteRangeRequest: 'bytes key, bytes range_end, bool prev_kv',
  DeleteRangeResponse: `${H}, int64 deleted, *KeyValue prev_kvs`,
  RequestOp:
    'RangeRequest request_range, PutRequest request_put, ' +
    'DeleteRangeRequest request_delete_range, TxnRequest request_txn',
  ResponseOp:
    'RangeResponse response_range, PutResponse response_put, ' +
    'DeleteRangeResponse response_delete_range, TxnResponse response_txn',
  Compare:
    'CompareResult result, CompareTarget target, bytes key, int64 version, ' +
    'int64 create_revision, int64 mod_revision, bytes value, int64 lease, bytes range_end=64',
  TxnRequest: '*Compare compare, *RequestOp success, *RequestOp failure',
  TxnResponse: `${H}, bool succeeded, *ResponseOp responses`,
  CompactionRequest: 'int64 revision, bool physical',
  WatchRequest:
    'WatchCreateRequest create_request, WatchCancelRequest cancel_request, ' +
    'Empty progress_request',
  WatchCreateRequest:
    'bytes key, bytes range_end, int64 start_revision, bool progress_notify, ' +
    '*FilterType filters, bool prev_kv, int64 watch_id, bool fragment',
  WatchCancelRequest: 'int64 watch_id',
  WatchResponse:
    `${H}, int64 watch_id, bool created, bool canceled, int64 compact_revision, ` +
    'string cancel_reason, bool fragment, *Event events=11',
  LeaseGrantRequest: 'int64 TTL, int64 ID',
  LeaseGrantResponse: `${H}, int64 ID, int64 TTL, string error`,
  LeaseId: 'int64 ID',
  LeaseKeepAliveResponse: `${H}, int64 ID, int64 TTL`,
  LeaseTimeToLiveRequest: 'int64 ID, bool keys',
  LeaseTimeToLiveResponse: `${H}, int64 ID, int64 TTL, int64 grantedTTL, *bytes keys`,
  LeaseLeasesResponse: `${H}, *LeaseId leases`,
  Member: 'uint64 ID, string name, *string peerURLs, *string clientURLs, bool isLearner',
  MemberAddRequest: '*string peerURLs, bool isLearner',
  MemberAddResponse: `${H}, Member member, *Member members`,
  MemberId: 'uint64 ID',
  MemberUpdateRequest: 'uint64 ID, *string peerURLs',
  MemberListRequest: 'bool linearizable',
  MembersResponse: `${H}, *Member members`,
  AlarmRequest: 'AlarmAction action, uint64 memberID, AlarmType alarm',
  AlarmMember: 'uint64 memberID, AlarmType alarm',
  AlarmResponse: `${H}, *AlarmMember alarms`,
  DowngradeInfo: 'bool enabled, string targetVersion',
  StatusResponse:
    `${H}, string version, int64 dbSize, uint64 leader, uint64 raftIndex, uint64 raftTerm, ` +
    'uint64 raftAppliedIndex, *string errors, int64 dbSizeInUse, bool isLearner, ' +
    'string storageVersion, int64 dbSizeQuota, DowngradeInfo downgradeInfo',
  HashResponse: `${H}, uint32 hash`,
  HashKVRequest: 'int64 revision',
  HashKVResponse: `${H}, uint32 hash, int64 compact_revision, int64 hash_revision`,
  SnapshotResponse: `${H}, uint64 remaining_bytes, bytes blob, string version`,
  MoveLeaderRequest: 'uint64 targetID',
  DowngradeRequest: 'DowngradeAction action, string version',
  DowngradeResponse: `${H}, string version`,
  LockRequest: 'bytes name, int64 lease',
  LockResponse: `${H}, bytes key`,
  UnlockRequest: 'bytes key',
  LeaderKey: 'bytes name, bytes key, int64 rev, int64 lease',
  CampaignRequest: 'bytes name, int64 lease, bytes value',
  CampaignResponse: `${H}, LeaderKey leader`,
  ProclaimRequest: 'LeaderKey leader, bytes value',
  LeaderRequest: 'bytes name',
  LeaderResponse: `${H}, KeyValue kv`,
  ResignRequest: 'LeaderKey leader',
  AuthStatusResponse: `${H}, bool enabled, uint64 authRevision`,
  AuthenticateRequest: 'string name, string password',
  AuthenticateResponse: `${H}, string token`,
  UserAddOptions: 'bool no_password',
  AuthUserAddRequest: 'string name, string password, UserAddOptions options, string hashedPassword',
  AuthUserName: 'string name',
  AuthUserChangePasswordRequest: 'string name, string password, string hashedPassword',
  AuthUserGrantRoleRequest: 'string user, string role',
  AuthUserRevokeRoleRequest: 'string name, string role',
  AuthUserGetResponse: `${H}, *string roles`,
  AuthUserListResponse: `${H}, *string users`,
  AuthRoleAddRequest: 'string name',
  AuthRoleName: 'string role',
  Permission: 'PermissionType permType, bytes key, bytes range_end',
  AuthRoleGetResponse: `${H}, *Permission perm`,
  AuthRoleListResponse: `${H}, *string roles`,
  AuthRoleGrantPermissionRequest: 'string name, Permission perm',
  AuthRoleRevokePermissionRequest: 'string role, bytes key, bytes range_end',
};

function parse(source: string): Message {
  const fields: Field[] = [];
  let number = 0;
  for (const part of source === '' ? [] : source.split(', ')) {
    const [, star, kind = '', name = '', given] = /^(\*?)(\w+) (\w+)(?:=(\d+))?$/.exec(part) ?? [];
    number = given === undefined ? number + 1 : Number(given);
    fields.push({
      number,
      name,
      camel: name.replaceAll(/_(\w)/g, (_all, letter: string) => letter.toUpperCase()),
      kind: kindOf(kind),
      isRepeated: star === '*',
    });
  }
  return {
    fields,
    byName: new Map(fields.flatMap((field) => [field.name, field.camel].map((n) => [n, field]))),
    byNumber: new Map(fields.map((field) => [field.number, field])),
  };
}

function kindOf(kind: string): Field['kind'] {
  if (KINDS.has(kind)) return kind as Kind;
  const enumName = ownMember(SHORT_ENUMS, kind);
  return enumName === undefined ? { message: kind } : { enum: enumName };
}

const MESSAGES: ReadonlyMap<string, Message> = new Map(
  Object.entries(SOURCE).map(([name, source]) => [name, parse(source)]),
);
const EMPTY = parse('');

/** A message by name. */
export function messageOf(name: string): Message {
  return MESSAGES.get(name) ?? EMPTY;
}

export interface GatewayRoute {
  /** `/package.Service/Method`. */
  readonly method: string;
  readonly request: string;
  readonly response: string;
  readonly isStream: boolean;
}

/**
 * `path Service/Method Request Response`, paths below /v3/; `stream` marks streams. Services are
 * of the package etcdserverpb unless they name theirs.
 */
const ROUTES = `
kv/range KV/Range RangeRequest RangeResponse
kv/put KV/Put PutRequest PutResponse
kv/deleterange KV/DeleteRange DeleteRangeRequest DeleteRangeResponse
kv/txn KV/Txn TxnRequest TxnResponse
kv/compaction KV/Compact CompactionRequest HeaderOnly
watch Watch/Watch WatchRequest WatchResponse stream
lease/grant Lease/LeaseGrant LeaseGrantRequest LeaseGrantResponse
lease/revoke Lease/LeaseRevoke LeaseId HeaderOnly
kv/lease/revoke Lease/LeaseRevoke LeaseId HeaderOnly
lease/keepalive Lease/LeaseKeepAlive LeaseId LeaseKeepAliveResponse stream
lease/timetolive Lease/LeaseTimeToLive LeaseTimeToLiveRequest LeaseTimeToLiveResponse
kv/lease/timetolive Lease/LeaseTimeToLive LeaseTimeToLiveRequest LeaseTimeToLiveResponse
lease/leases Lease/LeaseLeases Empty LeaseLeasesResponse
kv/lease/leases Lease/LeaseLeases Empty LeaseLeasesResponse
cluster/member/add Cluster/MemberAdd MemberAddRequest MemberAddResponse
cluster/member/remove Cluster/MemberRemove MemberId MembersResponse
cluster/member/update Cluster/MemberUpdate MemberUpdateRequest MembersResponse
cluster/member/list Cluster/MemberList MemberListRequest MembersResponse
cluster/member/promote Cluster/MemberPromote MemberId MembersResponse
maintenance/alarm Maintenance/Alarm AlarmRequest AlarmResponse
maintenance/status Maintenance/Status Empty StatusResponse
maintenance/defragment Maintenance/Defragment Empty HeaderOnly
maintenance/hash Maintenance/Hash Empty HashResponse
maintenance/hashkv Maintenance/HashKV HashKVRequest HashKVResponse
maintenance/snapshot Maintenance/Snapshot Empty SnapshotResponse stream
maintenance/transfer-leadership Maintenance/MoveLeader MoveLeaderRequest HeaderOnly
maintenance/downgrade Maintenance/Downgrade DowngradeRequest DowngradeResponse
lock/lock v3lockpb.Lock/Lock LockRequest LockResponse
lock/unlock v3lockpb.Lock/Unlock UnlockRequest HeaderOnly
election/campaign v3electionpb.Election/Campaign CampaignRequest CampaignResponse
election/proclaim v3electionpb.Election/Proclaim ProclaimRequest HeaderOnly
election/leader v3electionpb.Election/Leader LeaderRequest LeaderResponse
election/observe v3electionpb.Election/Observe LeaderRequest LeaderResponse stream
election/resign v3electionpb.Election/Resign ResignRequest HeaderOnly
auth/enable Auth/AuthEnable Empty HeaderOnly
auth/disable Auth/AuthDisable Empty HeaderOnly
auth/status Auth/AuthStatus Empty AuthStatusResponse
auth/authenticate Auth/Authenticate AuthenticateRequest AuthenticateResponse
auth/user/add Auth/UserAdd AuthUserAddRequest HeaderOnly
auth/user/get Auth/UserGet AuthUserName AuthUserGetResponse
auth/user/list Auth/UserList Empty AuthUserListResponse
auth/user/delete Auth/UserDelete AuthUserName HeaderOnly
auth/user/changepw Auth/UserChangePassword AuthUserChangePasswordRequest HeaderOnly
auth/user/grant Auth/UserGrantRole AuthUserGrantRoleRequest HeaderOnly
auth/user/revoke Auth/UserRevokeRole AuthUserRevokeRoleRequest HeaderOnly
auth/role/add Auth/RoleAdd AuthRoleAddRequest HeaderOnly
auth/role/get Auth/RoleGet AuthRoleName AuthRoleGetResponse
auth/role/list Auth/RoleList Empty AuthRoleListResponse
auth/role/delete Auth/RoleDelete AuthRoleName HeaderOnly
auth/role/grant Auth/RoleGrantPermission AuthRoleGrantPermissionRequest HeaderOnly
auth/role/revoke Auth/RoleRevokePermission AuthRoleRevokePermissionRequest HeaderOnly
`;

/** Gateway routes by their path below `/v3/`. */
export const GATEWAY_ROUTES: ReadonlyMap<string, GatewayRoute> = new Map(
  ROUTES.trim()
    .split('\n')
    .map((row) => {
      const [path = '', method = '', request = '', response = '', stream] = row.split(' ');
      return [
        path,
        {
          method: method.includes('.') ? `/${method}` : `/etcdserverpb.${method}`,
          ...{ request, response, isStream: stream === 'stream' },
        },
      ];
    }),
);
